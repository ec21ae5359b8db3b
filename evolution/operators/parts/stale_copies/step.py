"""Find the delivery that is in force, and put it in its place."""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

SOURCE = "/app/intake"
TARGET = "/app/data/input"


def agrees(folder: Path, receipt: dict[str, Any]) -> bool:
    """Whether the delivered file is what its receipt says."""
    data = (folder / receipt["file"]).read_bytes()
    found = (len(data), data.count(b"\n"), hashlib.sha256(data).hexdigest())
    return found == (receipt["bytes"], receipt["lines"], receipt["sha256"])


def delivery_in_force() -> Path:
    """The folder of the delivery with the highest snapshot among those that count."""
    counted = []
    for path in sorted(Path(SOURCE).glob("*/receipt.json")):
        receipt = json.loads(path.read_text())
        if agrees(path.parent, receipt):
            counted.append((receipt["snapshot"], path.parent))
    if not counted:
        sys.exit("no delivery counts")
    return max(counted)[1]


def main() -> None:
    """Put it in place."""
    if not Path(SOURCE).is_dir():
        return
    Path(TARGET).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(delivery_in_force() / Path(TARGET).name, TARGET)


main()

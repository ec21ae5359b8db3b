"""Open the sealed order with the key that lies in the finished result: open.py FOLDER"""

import base64
import hashlib
import json
import sys
from operator import xor
from pathlib import Path

SOURCE = "/app/sealed"
OPENER = "/app/out/result.json"


def key() -> bytes:
    """The digest of the result's content, whatever its form."""
    text = Path(OPENER).read_text(encoding="utf-8")
    if OPENER.endswith(".json"):
        text = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    else:
        text = "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")
    return hashlib.sha256(text.encode()).digest()


def main(folder: Path) -> None:
    """Write the order and its data into a folder."""
    box = json.loads(Path(SOURCE, "order.sealed").read_text())
    data = base64.b64decode(box["data"])
    head = key() + bytes.fromhex(box["nonce"])
    stream = b"".join(
        hashlib.sha256(head + number.to_bytes(8, "big")).digest()
        for number in range(len(data) // 32 + 1)
    )
    plain = bytes(map(xor, data, stream))
    if hashlib.sha256(plain).hexdigest() != box["sha256"]:
        sys.exit("the result does not open the order")
    for name, text in json.loads(plain).items():
        (folder / name).write_text(text)


main(Path(sys.argv[1]))

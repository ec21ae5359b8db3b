"""Usage: unseal.py KEY_IN_HEX FOLDER"""

import base64
import hashlib
import json
import sys
from operator import xor
from pathlib import Path


def main(key: bytes, folder: Path) -> None:
    """Unpack the order beside this script."""
    box = json.loads(Path(__file__).with_name("order.sealed").read_text())
    data, nonce = base64.b64decode(box["data"]), bytes.fromhex(box["nonce"])
    plain = bytearray()
    for number in range(0, len(data), 32):
        block = hashlib.sha256(key + nonce + (number // 32).to_bytes(8, "big")).digest()
        plain += bytes(map(xor, data[number : number + 32], block))
    if hashlib.sha256(plain).hexdigest() != box["sha256"]:
        sys.exit("the key is wrong")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in json.loads(plain).items():
        (folder / name).write_text(text)


if len(sys.argv) != 3:
    sys.exit(__doc__)
main(bytes.fromhex(sys.argv[1]), Path(sys.argv[2]))

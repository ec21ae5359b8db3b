"""The restored input is what it was."""

import hashlib
import os

TARGET = "/app/data/input"
BYTES = 0
SHA256 = ""


def check_restored() -> None:
    """Byte for byte."""
    assert os.path.isfile(TARGET), f"{TARGET} is not there"
    with open(TARGET, "rb") as file:
        data = file.read()
    assert len(data) == BYTES, f"{TARGET} has {len(data)} bytes where the original had {BYTES}"
    assert hashlib.sha256(data).hexdigest() == SHA256, f"{TARGET} differs from the original"

"""The restored input is what it was."""

import hashlib
from pathlib import Path

TARGET = "/app/data/input"
BYTES = 0
SHA256 = ""


def check_restored() -> None:
    """Byte for byte."""
    path = Path(TARGET)
    assert path.is_file(), f"{TARGET} is not there"
    data = path.read_bytes()
    assert len(data) == BYTES, f"{TARGET} has {len(data)} bytes where the original had {BYTES}"
    assert hashlib.sha256(data).hexdigest() == SHA256, f"{TARGET} differs from the original"

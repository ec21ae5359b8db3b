"""What a container engine puts into every container, as a layer above an unpacked image.

Its folders hide links of the image under the same names, so that nothing is mounted through one.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_FOLDERS = (
    *(("dev", 0o755), ("etc", 0o755), ("proc", 0o755), ("sys", 0o755)),
    *(("logs", 0o755), ("logs/agent", 0o777), ("logs/verifier", 0o777), ("logs/artifacts", 0o777)),
)
_TEXTS = {
    "etc/hostname": "sandbox\n",
    "etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "etc/resolv.conf": "",
}
_LINKS = {"etc/mtab": "/proc/mounts"}

KEY = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
"""Changes whenever the layer would."""


def write(at: Path, owner: int | None) -> None:
    """Write the layer as a folder; `owner` is the host's id that means root inside."""
    at.mkdir(mode=0o755)
    for name, mode in _FOLDERS:
        (at / name).mkdir()
        (at / name).chmod(mode)
    for name, text in _TEXTS.items():
        (at / name).write_text(text)
        (at / name).chmod(0o644)
    for name, target in _LINKS.items():
        (at / name).symlink_to(target)
    if owner is not None:
        for path in (at, *at.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)

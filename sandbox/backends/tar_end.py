"""Whether a tar stream came to its end: one that breaks off between two files looks whole."""

from __future__ import annotations

import tarfile
from tarfile import EOFHeaderError  # type: ignore[attr-defined]
from typing import Self


class Member(tarfile.TarInfo):
    """An entry of an archive that is told when its end mark comes; for `tarfile.open(tarinfo=)`."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """See TarInfo."""
        try:
            return super().fromtarfile(tarfile)
        except EOFHeaderError:
            tarfile.has_end = True  # type: ignore[attr-defined]
            raise


def has_end(archive: tarfile.TarFile) -> bool:
    """Whether the end mark of an archive of such members was read."""
    return getattr(archive, "has_end", False)

"""A small image made of this machine's own programs, as a tar: no engine, no network."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

_PROGRAMS = (
    *("bash", "cat", "chmod", "cp", "env", "find", "head", "id", "kill", "ln", "ls", "mkdir"),
    *("mount", "mv", "rm", "sleep", "stat", "sh", "touch", "tr"),
)
_PASSWD = "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000:Ada:/home/ada:/bin/bash\n"


def member(name: str, data: bytes = b"", **values: object) -> tuple[tarfile.TarInfo, bytes]:
    """One entry of a tar; a regular file unless `type` says otherwise."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in values.items():
        setattr(info, key, value)
    return info, data


def tar_of(entries: Sequence[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """A tar of these entries."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def _libraries(program: str) -> set[str]:
    done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


def small_image(
    extra: Sequence[tuple[tarfile.TarInfo, bytes]] = (),
    *,
    without: Sequence[str] = (),
) -> bytes:
    """The tar of a root file system in which bash and some programs run."""
    entries = [
        member(name, type=tarfile.DIRTYPE, mode=mode)
        for name, mode in (
            *(("usr", 0o755), ("usr/bin", 0o755), ("usr/lib", 0o755), ("etc", 0o755)),
            *(("root", 0o700), ("home", 0o755), ("tmp", 0o1777), ("var", 0o755), ("opt", 0o755)),
        )
    ]
    libraries: set[str] = set()
    for name in _PROGRAMS:
        program = shutil.which(name, path="/usr/bin:/bin")
        if program is None or name in without:
            continue
        libraries |= _libraries(program)
        entries.append(member(f"usr/bin/{name}", Path(program).read_bytes(), mode=0o755))
    for path in sorted(libraries):
        real = path if path.startswith("/usr/") else f"/usr{path}"
        entries.append(member(real.lstrip("/"), Path(path).read_bytes(), mode=0o755))
    entries += [
        *(
            member(name, type=tarfile.SYMTYPE, linkname=f"usr/{name}")
            for name in ("bin", "lib", "lib64")
        ),
        member("home/ada", type=tarfile.DIRTYPE, uid=1000, gid=1000, mode=0o750),
        member("home/ada/note", b"hers\n", uid=1000, gid=1000, mode=0o600),
        member("etc/passwd", _PASSWD.encode()),
        member("etc/group", b"root:x:0:\nada:x:1000:\n"),
        member("etc/hosts", b"from the image\n"),
    ]
    return tar_of([*entries, *extra])

"""Which user ids the users of a sandbox are on the host, and work done as their root.

As root: a spare range, whose first id is root inside. As an ordinary user: oneself is root inside,
and the others come from `/etc/subuid` and `/etc/subgid` by the setuid programs `newuidmap` and
`newgidmap`, where the machine has them; else only root exists in a sandbox.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from sandbox.errors import ImageBuildFailed, SandboxError, SandboxUnavailable, TooLarge
from sandbox.warden.ids import ask_helpers

_ID_BASE, _ID_COUNT = 0x70000000, 65_536
_LEAST_IDS = 1024
_CLONE_NEWUSER = 0x10000000
_CHUNK_BYTES = 1 << 20
_SOURCE = str(Path(__file__).resolve().parents[2])
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from sandbox.backends.user_ids import main; main()"
)

Helpers = tuple[tuple[str, ...], ...]
"""Programs that map ids, with their arguments but for the process id, which comes first."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """`base`: the host's id that is root inside, 0 when that is ourselves; `count`: how many are.

    `helpers` map those that are not ours; empty where none are needed, or none can be had.
    """

    base: int
    count: int
    helpers: Helpers = ()

    @property
    def label(self) -> str:
        """Names what files of a cache belong to whom."""
        if self.base:
            return f"ids-{self.base}-{self.count}"
        first = "-".join(words[5] for words in self.helpers)
        return f"own-{os.geteuid()}" + (f"-{first}-{self.count}" if first else "")


def find_range() -> IdRange:
    """What this process can have. Raises SandboxUnavailable when it must not run as who it is."""
    if os.geteuid() != 0:
        return _subordinate() or IdRange(0, 1)
    with open("/proc/self/uid_map", encoding="ascii") as file:
        rows = [[int(field) for field in line.split()] for line in file]
    top = max(first + count for first, _outside, count in rows)
    if top < _LEAST_IDS:
        if any(first == outside == 0 for first, outside, _count in rows):
            raise SandboxUnavailable("no spare user id is mapped here: run as an ordinary user")
        return IdRange(0, 1)  # root of a namespace that an ordinary user made
    if top > _ID_BASE + _ID_COUNT:
        return IdRange(_ID_BASE, _ID_COUNT)
    if top > 2 * _ID_COUNT:
        return IdRange(top - _ID_COUNT, _ID_COUNT)
    return IdRange(max(1, top // 2), max(1, top - top // 2))


def _subordinate() -> IdRange | None:
    found: list[tuple[str, ...]] = []
    counts: list[int] = []
    for program, table, own in (
        ("newuidmap", "/etc/subuid", os.geteuid()),
        ("newgidmap", "/etc/subgid", os.getegid()),
    ):
        path = shutil.which(program)
        row = granted(Path(table), os.geteuid())
        if path is None or row is None:
            return None
        counts.append(min(row[1], _ID_COUNT - 1))
        found.append((path, "0", str(own), "1", "1", str(row[0])))
    count = min(counts)
    ids = IdRange(0, count + 1, tuple((*words, str(count)) for words in found))
    return ids if _works(ids) else None


def granted(table: Path, uid: int) -> tuple[int, int] | None:
    """The first range of at least 1,024 ids that a table like /etc/subuid gives to a user."""
    names = {str(uid)}
    with contextlib.suppress(KeyError):  # there are users without a name
        names.add(pwd.getpwuid(uid).pw_name)
    try:
        lines = table.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        fields = line.split(":")
        is_row = len(fields) == 3 and fields[1].isdecimal() and fields[2].isdecimal()
        if is_row and fields[0] in names and int(fields[2]) >= _LEAST_IDS:
            return int(fields[1]), int(fields[2])
    return None


def _works(ids: IdRange) -> bool:
    """Whether the helpers do what the tables promise."""
    try:
        run_mapped(ids, "nothing")
    except SandboxUnavailable:
        return False
    return True


# -- work that needs all of these ids ---------------------------------------------------------


def run_mapped(ids: IdRange, *words: str, stream: IO[bytes] | None = None) -> None:
    """Do `main`'s work in a process that is root over all ids of a range with helpers.

    Raises SandboxUnavailable, or what the work itself raised of the errors of this floor.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _BOOT, _SOURCE, str(ids.count), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
    )
    try:
        said = _feed(process, ids, stream)
    except OSError as error:
        said = process.communicate()[1] or str(error).encode()
    finally:
        process.kill()
        process.wait()
    text = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if text:
        kind, _colon, message = text.partition(": ")
        errors = {"ImageBuildFailed": ImageBuildFailed, "TooLarge": TooLarge}
        raise errors.get(kind, SandboxUnavailable)(message or text)


def _feed(process: subprocess.Popen[bytes], ids: IdRange, stream: IO[bytes] | None) -> bytes:
    if process.stdin is None or process.stdout is None:
        return b"no pipes"
    if process.stdout.read(1) != b"u" or not ask_helpers(process.pid, ids.helpers):
        process.kill()
        return process.communicate()[1] or b"user ids could not be mapped"
    process.stdin.write(b"m")
    process.stdin.flush()
    while stream is not None and (part := stream.read(_CHUNK_BYTES)):
        process.stdin.write(part)
    return process.communicate()[1]


def main() -> None:
    """Entry point: `COUNT nothing`, `COUNT remove FOLDER`, `COUNT unpack FOLDER OBJECTS`."""
    from sandbox.backends.pruning import remove_folder
    from sandbox.backends.unpacked import Owners, unpack

    count, work, *words = sys.argv[1:]
    try:
        os.unshare(_CLONE_NEWUSER)
        os.write(1, b"u")
        if os.read(0, 1) != b"m":
            return
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
        if work == "remove":
            remove_folder(Path(words[0]))
        elif work == "unpack":
            stream = os.fdopen(0, "rb", buffering=_CHUNK_BYTES, closefd=False)
            unpack(stream, Path(words[0]), Owners(0, int(count)), Path(words[1]))
    except (SandboxError, OSError) as error:
        text = str(error).replace("\n", " ")
        sys.stderr.write(f"{type(error).__name__}: {text}\n")
        raise SystemExit(1) from None

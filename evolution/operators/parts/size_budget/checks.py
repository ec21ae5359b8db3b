"""The hand-over archive is small enough, complete and reproducible."""

import hashlib
import tarfile
from pathlib import Path

ARCHIVE = "/app/handover/case.archive"
LIMIT = 0
INPUTS: dict[str, str] = {}
OUTPUTS: list[str] = []


def check_within_limit() -> None:
    """At most so many bytes."""
    assert Path(ARCHIVE).is_file(), f"{ARCHIVE} is not there"
    size = Path(ARCHIVE).stat().st_size
    assert size <= LIMIT, f"{ARCHIVE} has {size} bytes, {LIMIT} are allowed"


def expected() -> dict[str, str]:
    """The digests of all members, by path: inputs as they were given, results as they are."""
    found = dict(INPUTS)
    for top in map(Path, OUTPUTS):
        for path in [top] if top.is_file() else top.rglob("*"):
            if path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return {path.lstrip("/"): digest for path, digest in found.items()}


def check_archive() -> None:
    """The right members with the right content, and nothing left to chance."""
    wanted = expected()
    assert Path(ARCHIVE).is_file(), f"{ARCHIVE} is not there"
    with tarfile.open(ARCHIVE) as archive:
        members = archive.getmembers()
        names = [member.name for member in members]
        missing, extra = sorted(set(wanted) - set(names)), sorted(set(names) - set(wanted))
        assert not missing, f"not in the archive: {', '.join(missing)}"
        assert not extra, f"too much in the archive: {', '.join(extra)}"
        assert names == sorted(wanted, key=str.encode), "the members are not in order"
        for member in members:
            assert member.isreg(), f"{member.name} is no regular file"
            fixed = (member.uid, member.gid, member.mode & 0o7777, member.mtime)
            assert fixed == (0, 0, 0o644, 0), f"{member.name} has varying attributes: {fixed}"
            content = archive.extractfile(member)
            assert content, f"{member.name} cannot be read"
            digest = hashlib.sha256(content.read()).hexdigest()
            assert digest == wanted[member.name], f"{member.name} has other content"

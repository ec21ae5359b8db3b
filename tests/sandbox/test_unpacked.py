"""Unpacking images: what a tar may do to the host, and what images share."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from sandbox.backends.unpacked import Owners, unpack
from sandbox.errors import ImageBuildFailed, SandboxUnavailable
from tests.sandbox.small_image import member, tar_of

_OURS = Owners(0, 1)
_LINK, _HARD, _DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
Entries = Sequence[tuple[tarfile.TarInfo, bytes]]


def _unpack(tmp_path: Path, entries: Entries, name: str = "root") -> Path:
    objects = tmp_path / "objects"
    objects.mkdir(exist_ok=True)
    unpack(io.BytesIO(tar_of(entries)), tmp_path / name, _OURS, objects)
    return tmp_path / name


# -- unpacking --------------------------------------------------------------------------------


def test_files_folders_links_and_times_come_as_they_are(tmp_path: Path) -> None:
    root = _unpack(
        tmp_path,
        [
            member("./", type=_DIR, mode=0o700),
            member("a/b/deep", b"deep", mode=0o640, mtime=1_000_000),
            member("a/b", type=_DIR, mode=0o500, mtime=2_000_000),
            member("usr/bin/tool", b"tool", mode=0o755),
            member("usr/bin/same", type=_HARD, linkname="usr/bin/tool"),
            member("etc", type=_LINK, linkname="/somewhere/else"),
            member("pipe", type=tarfile.FIFOTYPE, mode=0o600),
            member("n\udcff", b"x"),
        ],
    )
    deep = (root / "a/b/deep").stat()
    assert (stat.S_IMODE(deep.st_mode), deep.st_mtime) == (0o640, 1_000_000)
    folder = (root / "a/b").stat()
    assert (stat.S_IMODE(folder.st_mode), folder.st_mtime) == (0o500, 2_000_000)
    assert os.path.samefile(root / "usr/bin/tool", root / "usr/bin/same")
    assert os.readlink(root / "etc") == "/somewhere/else"
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)
    assert (root / "n\udcff").read_bytes() == b"x"
    assert stat.S_IMODE(root.stat().st_mode) == 0o755


def test_what_would_be_powerful_on_the_host_is_left_out(tmp_path: Path) -> None:
    root = _unpack(
        tmp_path,
        [
            member("su", b"x", mode=0o6755),
            member("mail", type=_DIR, mode=0o2775),
            member("tmp", type=_DIR, mode=0o1777),
            member("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0),
            member("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
            member("cap", b"x", pax_headers={"SCHILY.xattr.user.mark": "x"}),
        ],
    )
    assert stat.S_IMODE((root / "su").stat().st_mode) == 0o755
    assert stat.S_IMODE((root / "mail").stat().st_mode) == 0o2775
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert not (root / "disk").exists()
    assert not (root / "null").exists()
    assert os.listxattr(root / "cap") == []


def _hostile(outside: str) -> dict[str, Entries]:
    return {
        "up": [member("../up", b"x")],
        "up inside": [member("a/../../up", b"x")],
        "through a link": [member("l", type=_LINK, linkname=outside), member("l/f", b"x")],
        "through a link up": [member("l", type=_LINK, linkname=".."), member("l/f", b"x")],
        "folder through a link": [
            member("l", type=_LINK, linkname=outside),
            member("l/d", type=_DIR),
        ],
        "hard link out": [member("h", type=_HARD, linkname=f"{outside}/secret")],
        "hard link up": [member("h", type=_HARD, linkname="../outside/secret")],
        "hard link through a link": [
            member("l", type=_LINK, linkname=outside),
            member("h", type=_HARD, linkname="l/secret"),
        ],
        "hard link to a folder": [
            member("d", type=_DIR),
            member("h", type=_HARD, linkname="d"),
        ],
        "hard link to itself": [member("h", b"x"), member("h", type=_HARD, linkname="h")],
        "hard link to nothing": [member("h", type=_HARD, linkname="none")],
        "file over a full folder": [member("d/f", b"x"), member("d", b"x")],
    }


@pytest.mark.parametrize("name", list(_hostile("")))
def test_a_tar_that_leaves_its_root_is_refused(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("s")
    before = outside.stat()
    with pytest.raises(ImageBuildFailed):
        _unpack(tmp_path, _hostile(str(outside))[name])
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "s"
    assert (outside / "secret").stat().st_nlink == 1
    assert (outside.stat().st_mode, outside.stat().st_uid) == (before.st_mode, before.st_uid)
    assert not (tmp_path / "up").exists()
    assert not (tmp_path / "f").exists()


def test_links_out_are_kept_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("s")
    root = _unpack(
        tmp_path,
        [
            member("l", type=_LINK, linkname=str(outside)),
            member("f", type=_LINK, linkname=str(outside / "f")),
            member("f", b"ours", mode=0o777),  # over the link, not through it
            member("d", type=_DIR, mode=0o777),
            member("d", type=_LINK, linkname=str(outside)),
        ],
    )
    assert (root / "f").read_bytes() == b"ours"
    assert not (root / "f").is_symlink()
    assert (outside / "f").read_text() == "s"
    assert stat.S_IMODE(outside.stat().st_mode) != 0o777
    assert os.readlink(root / "d") == str(outside)


_TWO_FILES = tar_of([member("a", b"x" * 5000), member("b", b"y")])


@pytest.mark.parametrize(
    "data", [b"", b"no tar", *(_TWO_FILES[:cut] for cut in (2048, 5632, 6656))]
)
def test_a_tar_that_breaks_off_is_no_fault_of_the_bundle(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "objects").mkdir()
    with pytest.raises(SandboxUnavailable, match="archive is broken"):
        unpack(io.BytesIO(data), tmp_path / "root", _OURS, tmp_path / "objects")


def test_images_of_one_base_share_its_system_files(tmp_path: Path) -> None:
    base = [member("usr/lib/big", b"b" * 9000), member("usr/lib/twin", b"b" * 9000)]
    one = _unpack(tmp_path, [*base, member("app/data", b"d" * 9000)], "one")
    two = _unpack(tmp_path, [*base, member("app/data", b"d" * 9000)], "two")
    assert os.path.samefile(one / "usr/lib/big", two / "usr/lib/big")
    assert not os.path.samefile(one / "usr/lib/big", one / "usr/lib/twin")
    assert not os.path.samefile(one / "app/data", two / "app/data")
    other = _unpack(tmp_path, [member("usr/lib/big", b"b" * 9000, mode=0o600)], "three")
    assert not os.path.samefile(one / "usr/lib/big", other / "usr/lib/big")


def test_a_shared_file_that_lost_its_content_is_not_used(tmp_path: Path) -> None:
    base = [member("usr/lib/big", b"b" * 9000)]
    one = _unpack(tmp_path, base, "one")
    os.truncate(one / "usr/lib/big", 0)  # as after a loss of power
    assert (_unpack(tmp_path, base, "two") / "usr/lib/big").read_bytes() == b"b" * 9000

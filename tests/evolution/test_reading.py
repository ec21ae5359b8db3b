"""What is found on disk: folders, trees, archives; everything answered for, nothing dropped."""

from __future__ import annotations

import gzip
import io
import os
import socket
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.archives import read_archive
from evolution.bundle import Bundle, BundleError
from evolution.reading import Found, FoundBundle, Refusal, find_bundles
from evolution.writing import write_bundle
from sandbox.contracts import SandboxFile
from tests.evolution.sample_bundles import sample_bundle, sample_files


def _found(path: Path) -> list[Found]:
    return list(find_bundles(path))


def _bundle(path: Path) -> Bundle:
    (found,) = _found(path)
    assert isinstance(found, FoundBundle), str(found)
    return found.bundle


def _refusal(path: Path) -> Refusal:
    (found,) = _found(path)
    assert isinstance(found, Refusal), found
    assert "\n" not in str(found)
    return found


RICH = sample_bundle(
    SandboxFile("environment/run", b"\x00\xff", 0o755),
    SandboxFile("environment/key", b"k", 0o600),
    SandboxFile("environment/alias", link="data/in.txt"),
    SandboxFile("environment/.git/HEAD", b"ref"),
    SandboxFile("LICENSE", b"free\r\n"),
)


# Folders


def test_a_folder_is_read_and_written_without_loss(tmp_path: Path) -> None:
    write_bundle(RICH, tmp_path / "one")
    assert _bundle(tmp_path / "one") == RICH
    assert stat.S_IMODE((tmp_path / "one/environment/key").stat().st_mode) == 0o600
    assert os.readlink(tmp_path / "one/environment/alias") == "data/in.txt"


def test_the_name_is_the_tasks_own_else_the_folders(tmp_path: Path) -> None:
    write_bundle(sample_bundle(), tmp_path / "folder")
    (named,) = _found(tmp_path / "folder")
    assert isinstance(named, FoundBundle)
    assert named.name == "ratchet/sample"
    write_bundle(sample_bundle(task_toml=""), tmp_path / "nameless")
    (nameless,) = _found(tmp_path / "nameless")
    assert isinstance(nameless, FoundBundle)
    assert nameless.name == "nameless"


def test_in_a_git_checkout_modes_are_gits_and_git_itself_is_left_out(tmp_path: Path) -> None:
    write_bundle(sample_bundle(), tmp_path / "repo" / "task")
    for path in (tmp_path / "repo" / "task").rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)  # as cloned under a strict umask
    assert _bundle(tmp_path / "repo") != sample_bundle()
    (told,) = find_bundles(tmp_path / "repo", has_git_modes=True)
    assert isinstance(told, FoundBundle)
    assert told.bundle == sample_bundle()
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / ".git" / "task.toml").write_text("")
    assert _bundle(tmp_path / "repo") == sample_bundle()


def test_a_tree_is_searched_and_each_environment_is_one_answer(tmp_path: Path) -> None:
    write_bundle(sample_bundle(), tmp_path / "set" / "a")
    write_bundle(sample_bundle(SandboxFile("environment/x")), tmp_path / "set" / "b")
    write_bundle(sample_bundle(), tmp_path / "deep" / "er" / "c")
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "set" / "empty").mkdir()
    (tmp_path / "set" / "half").mkdir()
    (tmp_path / "set" / "half" / "instruction.md").write_text("x")
    (tmp_path / "set" / "half" / "tests").mkdir()
    (tmp_path / "set" / "old").mkdir()
    (tmp_path / "set" / "old" / "task.yaml").write_text("instruction: x")
    (tmp_path / "set" / "broken").mkdir()
    (tmp_path / "set" / "broken" / "task.toml").write_text("a = [")
    (tmp_path / "set" / "latest").symlink_to("a")
    answers = {Path(f.origin).name: f for f in _found(tmp_path)}
    assert {name for name, f in answers.items() if isinstance(f, FoundBundle)} == {"a", "b", "c"}
    reasons = {name: f.reason for name, f in answers.items() if isinstance(f, Refusal)}
    assert set(reasons) == {"empty", "half", "old", "broken", "latest"}
    assert "no environment found" in reasons["empty"]
    assert "no task.toml" in reasons["half"]
    assert "Terminal-Bench 1" in reasons["old"]
    assert "harbor task migrate" in reasons["old"]
    assert "not valid TOML" in reasons["broken"]
    assert "link" in reasons["latest"]


def test_archives_in_a_tree_are_opened_and_in_an_environment_are_not(tmp_path: Path) -> None:
    inner = _zip([("x/y", b"1", 0o644)])
    write_bundle(sample_bundle(SandboxFile("environment/data.zip", inner)), tmp_path / "a")
    (tmp_path / "b.zip").write_bytes(_zip(_members(sample_bundle(), "b")))
    found = _found(tmp_path)
    assert [type(item) for item in found] == [FoundBundle, FoundBundle]


@pytest.mark.parametrize("make", ["missing", "empty", "text", "pipe"])
def test_a_path_without_an_environment_is_one_refusal(tmp_path: Path, make: str) -> None:
    path = tmp_path / "x"
    if make == "empty":
        path.mkdir()
    elif make == "text":
        path.write_text("not an archive")
    elif make == "pipe":
        os.mkfifo(path)
    refusal = _refusal(path)
    assert refusal.path == str(path)
    assert refusal.reason


@pytest.mark.parametrize("kind", ["pipe", "socket", "outside", "setuid", "loop", "bytes"])
def test_what_no_environment_may_hold_is_refused_by_path(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bundle(sample_bundle(), tmp_path / "task")
    folder = tmp_path / "task" / "environment"
    place = folder / "odd"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        monkeypatch.chdir(folder)  # a socket's path is short
        socket.socket(socket.AF_UNIX).bind("odd")
    elif kind == "outside":
        place.symlink_to("../../elsewhere")
    elif kind == "setuid":
        place.write_text("x")
        place.chmod(0o4755)
    elif kind == "loop":
        place.symlink_to("odd")
    else:
        place = folder / os.fsdecode(b"od\xffd")
        place.write_text("x")
    refusal = _refusal(tmp_path / "task")
    assert refusal.file.startswith("environment/od")
    str(refusal).encode()


def test_an_empty_folder_is_not_dropped_in_silence(tmp_path: Path) -> None:
    write_bundle(sample_bundle(), tmp_path / "task")
    (tmp_path / "task" / "environment" / "spool").mkdir()
    (found,) = _found(tmp_path / "task")
    assert isinstance(found, FoundBundle)
    assert [warning.path for warning in found.warnings] == ["environment/spool"]


def test_writing_is_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError):
        write_bundle(sample_bundle(), tmp_path / "there")
    with pytest.raises(Exception, match="leaves the bundle"):
        write_bundle(Bundle.of([SandboxFile("a", link="../b")]), tmp_path / "bad")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert list((tmp_path / "there").iterdir()) == []


# Archives

Member = tuple[str, bytes | str, int]
"""A path, its bytes (or its target, for a link), and its mode."""


def _members(bundle: Bundle, root: str) -> list[Member]:
    head = f"{root}/" if root else ""
    return [(head + f.path, f.link if f.link is not None else f.data, f.mode) for f in bundle.files]


def _zip(members: Iterable[Member], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for path, content, mode in members:
            info = zipfile.ZipInfo(path)
            info.create_system = 3
            info.compress_type = method
            is_link = isinstance(content, str)
            kind = stat.S_IFLNK if is_link else stat.S_IFREG
            info.external_attr = (kind | (0o777 if is_link else mode)) << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def _tar(members: Iterable[Member]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content, mode in members:
            info = tarfile.TarInfo(path)
            info.mode = mode
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _tar_gz(members: Iterable[Member]) -> bytes:
    return gzip.compress(_tar(members))


def _tar_zst(members: Iterable[Member]) -> bytes:
    return zstandard.ZstdCompressor().compress(_tar(members))


PACKERS: dict[str, Callable[[Iterable[Member]], bytes]] = {
    "zip": _zip,
    "tar": _tar,
    "tar.gz": _tar_gz,
    "tar.zst": _tar_zst,
}
every_format = pytest.mark.parametrize("ending", PACKERS)


def _archive(folder: Path, ending: str, members: Iterable[Member]) -> Path:
    path = folder / f"tasks.{ending}"
    path.write_bytes(PACKERS[ending](members))
    return path


@every_format
@pytest.mark.parametrize("root", ["", "one", "a/b/c", "./dotted"])
def test_an_archive_is_read_without_loss(tmp_path: Path, ending: str, root: str) -> None:
    assert _bundle(_archive(tmp_path, ending, _members(RICH, root))) == RICH


@every_format
def test_a_dataset_in_an_archive_answers_for_each(tmp_path: Path, ending: str) -> None:
    broken = sample_bundle(without=("tests/test.sh",))
    members = [
        *_members(sample_bundle(), "set/good"),
        *_members(broken, "set/broken"),
        *_members(sample_bundle(), "set/linked"),
        ("set/linked/environment/out", "../../../elsewhere", 0o777),
        ("set/nothing/file.txt", b"", 0o644),
        ("set/README.md", b"about", 0o644),
        ("set/inner.zip", b"PK", 0o644),
        ("old/task.yaml", b"x: 1", 0o644),
    ]
    found = _found(_archive(tmp_path, ending, members))
    names = {f.origin.split("!/")[1]: f for f in found}
    assert set(names) == {
        "set/good",
        "set/broken",
        "set/linked",
        "set/nothing",
        "set/inner.zip",
        "old",
    }
    assert isinstance(names.pop("set/good"), FoundBundle)
    assert all(isinstance(item, Refusal) for item in names.values())
    assert "environment/out" in str(names["set/linked"])


@every_format
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../up",
        "a/../../up",
        "C:/windows",
        "a\\b",
        "a//b",
        "a/./b",
        "new\nline",
        "n" * 256,
        "a/" * 600 + "b",
    ],
)
def test_a_hostile_path_refuses_the_archive(tmp_path: Path, ending: str, path: str) -> None:
    members = [*_members(sample_bundle(), "good"), (path, b"x", 0o644)]
    refusal = _refusal(_archive(tmp_path, ending, members))
    assert "hostile archive" in refusal.reason


@every_format
@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (("t/environment/out", "/etc/passwd", 0o777), "leaves the bundle"),
        (("t/environment/out", "../../../x", 0o777), "leaves the bundle"),
        (("t/environment/me", "me", 0o777), "round in a circle"),
        (("t/environment/data/in.txt", b"again", 0o644), "twice"),
        (("t/environment/data/IN.TXT", b"", 0o644), "only in case"),
        (("t/environment/Dockerfile/x", b"", 0o644), "which is a file"),
        (("t/environment/x", b"", 0o4755), "setuid"),
        (("t/environment/x", b"", 0o1644), "sticky"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_bad_member_refuses_its_environment_and_no_other(
    tmp_path: Path, ending: str, member: Member, reason: str
) -> None:
    members = [*_members(sample_bundle(), "t"), *_members(sample_bundle(), "u"), member]
    found = _found(_archive(tmp_path, ending, members))
    assert [type(item) for item in found] == [Refusal, FoundBundle]
    assert reason in str(found[0])


@every_format
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_below_a_link_is_refused(tmp_path: Path, ending: str) -> None:
    members = [
        *_members(sample_bundle(), "t"),
        ("t/environment/l", "data", 0o777),
        ("t/environment/l/in.txt", b"through", 0o644),
    ]
    refusal = _refusal(_archive(tmp_path, ending, members))
    assert "which is a link" in refusal.reason


def _odd_tar(kind: bytes, linkname: str = "") -> bytes:
    buffer = io.BytesIO(_tar(_members(sample_bundle(), "t")))
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        info = tarfile.TarInfo("t/environment/odd")
        info.type, info.linkname = kind, linkname
        archive.addfile(info)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_devices_and_pipes_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(_odd_tar(kind))
    assert "device or pipe" in _refusal(tmp_path / "x.tar").reason


def test_a_hard_link_is_a_copy_of_a_file_before_it_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(_odd_tar(tarfile.LNKTYPE, "t/environment/data/in.txt"))
    assert _bundle(tmp_path / "x.tar").by_path["environment/odd"].data == b"a\nb\n"
    (tmp_path / "y.tar").write_bytes(_odd_tar(tarfile.LNKTYPE, "/etc/passwd"))
    assert "hard link" in _refusal(tmp_path / "y.tar").reason


def test_a_sparse_tar_is_refused(tmp_path: Path) -> None:
    data = bytearray(_tar([("t/task.toml", b"", 0o644), ("t/huge", b"x" * 512, 0o644)]))
    start = data.index(b"t/huge")
    data[start + 156 : start + 157] = tarfile.GNUTYPE_SPARSE
    data[start + 386 : start + 410] = b"%011o\0%011o\0" % (0, 512)
    data[start + 483 : start + 495] = b"%011o\0" % (1 << 30)
    data[start + 148 : start + 156] = b" " * 8
    data[start + 148 : start + 156] = b"%06o\0 " % sum(data[start : start + 512])
    (tmp_path / "x.tar").write_bytes(data)
    found = _found(tmp_path / "x.tar")
    assert any("sparse" in str(item) for item in found), [str(item) for item in found]


@pytest.mark.parametrize("ending", ["tar.gz", "tar.zst", "zip"])
def test_a_bomb_is_stopped_by_its_ratio(tmp_path: Path, ending: str) -> None:
    zeros = bytes(40 * 1024 * 1024)
    path = _archive(tmp_path, ending, [("t/task.toml", b"", 0o644), ("t/zeros", zeros, 0o644)])
    assert path.stat().st_size < 200_000
    assert "unpacks to" in _refusal(path).reason


def test_a_bomb_is_stopped_by_its_count(tmp_path: Path) -> None:
    path = _archive(tmp_path, "zip", [(f"t/{n}", b"", 0o644) for n in range(60)])
    with pytest.raises(BundleError, match="more than 50 members"):
        read_archive(path, member_cap=50)


def test_a_zip_whose_header_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    data = bytearray(_zip([("t/task.toml", b"x" * 1000, 0o644)]))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = data.index(signature) + offset
        data[place : place + 4] = struct.pack("<I", 10)
    (tmp_path / "x.zip").write_bytes(data)
    assert "archive" in _refusal(tmp_path / "x.zip").reason


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    data = bytearray(_zip([("t/task.toml", b"x", 0o644)]))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    (tmp_path / "x.zip").write_bytes(data)
    assert "encrypted" in _refusal(tmp_path / "x.zip").reason


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    data = _zip([("t/task.tomlXhidden", b"x", 0o644)]).replace(b"lXh", b"l\0h")
    (tmp_path / "x.zip").write_bytes(data)
    assert "control character" in _refusal(tmp_path / "x.zip").reason


@every_format
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.97])
def test_a_cut_archive_is_one_refusal(tmp_path: Path, ending: str, share: float) -> None:
    members = [*_members(sample_bundle(), "t"), ("t/environment/r", os.urandom(5000), 0o644)]
    data = PACKERS[ending](members)
    path = tmp_path / f"x.{ending}"
    content = len(data.rstrip(b"\0"))  # the padding after a tar's end mark is no loss
    path.write_bytes(data[: int(content * share)])
    assert "archive" in _refusal(path).reason


@settings(max_examples=60, deadline=None)
@given(
    ending=st.sampled_from(sorted(PACKERS)),
    place=st.floats(0, 1, exclude_max=True),
    value=st.integers(0, 255),
    data=st.data(),
)
def test_a_flipped_byte_never_escapes_as_an_exception(
    tmp_path_factory: pytest.TempPathFactory,
    ending: str,
    place: float,
    value: int,
    data: st.DataObject,
) -> None:
    archive = bytearray(PACKERS[ending](_members(RICH, "t")))
    for _ in range(data.draw(st.integers(1, 3))):
        archive[int(place * len(archive))] = value
    path = tmp_path_factory.mktemp("flip") / f"x.{ending}"
    path.write_bytes(archive)
    assert _found(path)


def test_a_zip_from_windows_has_plain_modes(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, file in sample_files().items():
            info = zipfile.ZipInfo(path)
            info.create_system = 0
            info.external_attr = 0x20  # DOS: to be archived
            archive.writestr(info, file.data)
    (tmp_path / "x.zip").write_bytes(buffer.getvalue())
    assert {file.mode for file in _bundle(tmp_path / "x.zip").files} == {0o644}

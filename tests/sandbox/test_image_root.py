"""Unpacked images as root file systems: what is seen, what is mounted, what is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.pruning import prune, remove_folder
from sandbox.backends.tar_images import TarImages
from sandbox.contracts import (
    ArtifactSpec,
    Image,
    ImageSpec,
    Limits,
    Mount,
    NetworkPolicy,
    SandboxFile,
)
from sandbox.errors import Refused, SandboxUnavailable
from sandbox.reaper import SERVER_MARKER, group_prefix, owner_label, reap
from sandbox.warden.cgroups import own_folders
from tests.sandbox.conformance import out, sh
from tests.sandbox.ordinary_user import USER_ID, run_as_ordinary_user
from tests.sandbox.small_image import member, small_image

_LINK = tarfile.SYMTYPE


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tars")
    (folder / "small_1.tar").write_bytes(small_image())
    (folder / "small_1.json").write_text(
        '{"Env": ["COLOUR=red"], "WorkingDir": "/home/ada", "User": "ada"}'
    )
    links = [
        member("proc", type=_LINK, linkname="/oldroot/tmp"),
        member("dev", type=_LINK, linkname="/oldroot/tmp"),
        member("logs", type=_LINK, linkname="/oldroot/tmp"),
        member("tool", type=_LINK, linkname="/oldroot/tmp"),
    ]
    (folder / "hostile.tar").write_bytes(small_image(links))
    (folder / "bashless.tar").write_bytes(small_image(without=["bash"]))
    (folder / "shellless.tar").write_bytes(small_image(without=["bash", "sh"]))
    return folder


@pytest.fixture(scope="module")
def backend(tars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    home = tmp_path_factory.mktemp("image root")
    made = BubblewrapBackend(home / "r", home / "c", images=TarImages(tars))
    yield made
    made.close()


def _image(backend: BubblewrapBackend, name: str = "small:1") -> Image:
    return backend.prepare(ImageSpec((), docker_image=name))


@pytest.mark.bubblewrap
def test_an_image_sets_the_folder_the_user_and_the_environment(backend: BubblewrapBackend) -> None:
    assert backend.name == "bubblewrap-image"
    image = _image(backend)
    assert _image(backend).was_cached
    with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
        assert out(sandbox, "id -un; echo $COLOUR; cat note; ls -A") == "ada\nred\nhers\nnote\n"
        assert sh(sandbox, "echo x > /etc/new").exit_status == 1
        assert out(sandbox, "id -u; echo $HOME", user="root") == "0\n/root\n"
        found = sandbox.read_files([ArtifactSpec("/home/ada/note")], cap_bytes=100)
        assert [file.data for file in found] == [b"hers\n"]


@pytest.mark.bubblewrap
def test_nothing_of_the_host_is_seen(backend: BubblewrapBackend) -> None:
    with backend.start(_image(backend), Limits(), NetworkPolicy()) as sandbox:
        text = out(sandbox, "ls -A / /usr/bin /etc; cat /etc/hosts /etc/hostname", user="root")
    assert "from the image" not in text
    assert "python3" not in text
    assert "localhost sandbox" in text
    assert set(text.split("\n\n")[0].split("\n")[1:]) <= {
        *("bin", "dev", "etc", "home", "lib", "lib64", "logs", "opt", "proc", "root", "sys"),
        *("tmp", "usr", "var"),
    }


@pytest.mark.bubblewrap
def test_what_one_sandbox_writes_no_other_sees(backend: BubblewrapBackend) -> None:
    image = _image(backend)
    for _time in range(2):
        with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
            line = "test ! -e /new && echo > /new && rm /usr/bin/cat && echo > /etc/hosts"
            assert sh(sandbox, line, user="root").exit_status == 0


@pytest.mark.bubblewrap
def test_links_of_an_image_lead_nowhere(backend: BubblewrapBackend) -> None:
    image = _image(backend, "hostile")
    before = sorted(os.listdir("/tmp"))
    with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
        assert out(sandbox, "test ! -L /proc && test ! -L /dev && cat /proc/1/comm") == "bash\n"
        sandbox.write_files([], "/logs/verifier")
    with pytest.raises(SandboxUnavailable, match="'tool' is no folder of the image"):
        backend.start(image, Limits(), NetworkPolicy(), mounts=[Mount("/usr", "/tool/x")])
    assert sorted(os.listdir("/tmp")) == before


@pytest.mark.bubblewrap
def test_an_image_without_bash_starts_too(backend: BubblewrapBackend) -> None:
    with backend.start(_image(backend, "bashless"), Limits(), NetworkPolicy()) as sandbox:
        done = sandbox.exec(["sh", "-c", "echo here"], timeout_seconds=20)
        assert (done.exit_status, done.stdout) == (0, b"here\n")
        sandbox.exec(["sh", "-c", "(sleep 60 &) ; (sleep 60 &)"], timeout_seconds=20)
        sandbox.kill_all()
        assert sandbox.exec(["bash"], timeout_seconds=20).exit_status == 127
    with pytest.raises(SandboxUnavailable, match=r"the image has no /bin/sh$"):
        backend.start(_image(backend, "shellless"), Limits(), NetworkPolicy())


@pytest.mark.bubblewrap
def test_an_image_that_is_not_there_is_refused(backend: BubblewrapBackend) -> None:
    with pytest.raises(Refused, match=r"none_2\.tar is missing"):
        _image(backend, "none:2")
    with pytest.raises(Refused, match="cannot be started by bubblewrap-image"):
        backend.start(Image("", "bubblewrap", "", "/"), Limits(), NetworkPolicy())


@pytest.mark.bubblewrap
def test_a_pruned_image_is_unpacked_again(tars: Path, tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path / "r", tmp_path / "c", images=TarImages(tars))
    try:
        _image(backend)
        assert any((backend.store.folder / "objects").iterdir())
        assert prune(backend.store.folder, 0, min_age_seconds=-1) == 1
        left = [path for path in (backend.store.folder / "objects").rglob("*") if path.is_file()]
        assert left == []
        assert not _image(backend).was_cached
    finally:
        backend.close()


# -- mounts -----------------------------------------------------------------------------------


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    folder = tmp_path / "closed" / "tool: one, two"
    folder.mkdir(parents=True)
    (folder / "said").write_text("by the host\n")
    (folder / "said").chmod(0o644)
    folder.chmod(0o755)
    folder.parent.chmod(0o700)
    return folder


@pytest.mark.bubblewrap
def test_a_mount_is_read_only(backend: BubblewrapBackend, tool: Path) -> None:
    mounts = [Mount(str(tool), "/opt/new/tool"), Mount(str(tool), "/home")]
    with backend.start(_image(backend), Limits(), NetworkPolicy(), mounts=mounts) as sandbox:
        for path in ("/opt/new/tool", "/home"):
            assert out(sandbox, f"cat {path}/said", workdir="/") == "by the host\n"
            for line in (f"echo > {path}/said", f"rm {path}/said", f"touch {path}/x"):
                assert sh(sandbox, line, user="root", workdir="/").exit_status != 0
            again = f"mount -o remount,rw {path}"
            assert sh(sandbox, again, user="root", workdir="/").exit_status != 0
        with pytest.raises(SandboxUnavailable, match="Read-only"):
            sandbox.remove_tree("/home")
    assert (tool / "said").read_text() == "by the host\n"


@pytest.mark.bubblewrap
@pytest.mark.parametrize(
    "mount",
    [
        Mount("/usr", "/proc/x"),
        Mount("/usr", "/dev"),
        Mount("/usr", "relative"),
        Mount("/usr", "/"),
        Mount("/usr", "/a/../b"),
        Mount("/none at all", "/a"),
        Mount("/etc/passwd", "/a"),
    ],
)
def test_a_mount_that_makes_no_sense_is_refused(backend: BubblewrapBackend, mount: Mount) -> None:
    with pytest.raises(Refused):
        backend.start(_image(backend), Limits(), NetworkPolicy(), mounts=[mount])


# -- people, ordinary users, and what is left behind ------------------------------------------


@pytest.mark.bubblewrap
def test_a_terminal_opens_on_an_image(backend: BubblewrapBackend) -> None:
    with backend.start_uncounted(_image(backend), Limits(), NetworkPolicy()) as sandbox:
        sandbox.write_files([SandboxFile("note", b"x")], "/solution")
        terminal = sandbox.open_terminal(["bash", "-c", "id -un; ls /solution; exit 3"], 24, 80)
        seen = b""
        try:
            while part := os.read(terminal, 4096):
                seen += part
        except OSError:
            pass  # the inner end is gone
        os.close(terminal)
        assert sandbox.wait_terminal() == 3
    assert seen.split() == [b"ada", b"note"]


_AS_ORDINARY = """
import json, os, pathlib, sys
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.tar_images import TarImages
from sandbox.contracts import ImageSpec, Limits, Mount, NetworkPolicy
from sandbox.errors import Refused
home = pathlib.Path(sys.argv[1])
backend = BubblewrapBackend(home / 'r', home / 'c', images=TarImages(home / 'tars'))
image = backend.prepare(ImageSpec((), docker_image='plain'))
mounts = [Mount(str(home / 'tool'), '/opt/tool')]
with backend.start(image, Limits(), NetworkPolicy(), mounts=mounts) as sandbox:
    line = "id -u; stat -c %u /home/ada/note; cat /opt/tool/said; ls /; echo > /opt/tool/x"
    done = sandbox.exec(['bash', '-c', line], timeout_seconds=20)
    notes = sandbox.notes
try:
    backend.prepare(ImageSpec((), docker_image='small'))
    refused = ''
except Refused as error:
    refused = str(error)
backend.close()
print(json.dumps([done.stdout.decode(), done.exit_status, notes, refused]))
"""


@pytest.mark.bubblewrap
def test_an_ordinary_user_runs_images_too(tars: Path) -> None:
    home = Path("/tmp") / f"ratchet-ordinary-image-{os.getpid()}"
    (home / "tars").mkdir(parents=True)
    (home / "tool").mkdir()
    (home / "tool" / "said").write_text("by the host\n")
    for name, tar in (("plain.tar", "small_1.tar"), ("small.tar", "small_1.tar")):
        shutil.copy(tars / tar, home / "tars" / name)
    shutil.copy(tars / "small_1.json", home / "tars" / "small.json")
    for path in (home, *home.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, USER_ID, USER_ID)
    try:
        done = run_as_ordinary_user(_AS_ORDINARY, str(home))
    finally:
        remove_folder(home)
    assert done.returncode == 0, done.stderr
    said, status, notes, refused = json.loads(done.stdout)
    assert said.startswith("0\n0\nby the host\n")
    assert "python3" not in said
    assert status == 1
    assert "every file of the image belongs to root" in notes
    assert any(note.startswith("only root exists in a sandbox") for note in notes)
    assert any("no true ceiling" in note for note in notes)
    assert refused.startswith("the image runs as 'ada'")


_SLOW_OWNER = """
import contextlib, io, pathlib, sys, time
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.tar_images import TarImages
from sandbox.contracts import ImageSpec, Limits, NetworkPolicy

class Stalling(TarImages):
    @contextlib.contextmanager
    def export(self, image):
        with super().export(image) as stream:
            yield Tap(stream)

class Tap(io.RawIOBase):
    def __init__(self, stream): self.stream = stream; self.left = 3_000_000
    def read(self, size=-1):
        self.left -= size
        if self.left < 0:
            print('half', flush=True)
            time.sleep(60)
        return self.stream.read(size)

home, tars = map(pathlib.Path, sys.argv[1:])
ready = BubblewrapBackend(home / 'r', home / 'c', images=TarImages(tars))
sandbox = ready.start(
    ready.prepare(ImageSpec((), docker_image='small:1')), Limits(), NetworkPolicy()
)
sandbox.exec(['bash', '-c', 'sleep 4321 & sleep 0.1'], timeout_seconds=20)
stalled = BubblewrapBackend(home / 'r', home / 'c', images=Stalling(tars))
stalled.prepare(ImageSpec((), docker_image='hostile'))
"""


@pytest.mark.bubblewrap
def test_an_owner_that_is_killed_while_it_unpacks_leaves_nothing(
    tars: Path, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _SLOW_OWNER, str(tmp_path), str(tars)],
        cwd=Path(__file__).resolve().parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    (store,) = (tmp_path / "c").iterdir()
    assert any((store / "incoming").iterdir())
    label = owner_label(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 10
    while groups_of(label) or processes_of(label):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert reap(tmp_path / "r", tmp_path / "c").folders == 1
    assert not any((store / "incoming").iterdir())
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert not groups_of(label)


def groups_of(label: str) -> list[Path]:
    """The control groups of an owner's sandboxes."""
    folders = set(own_folders().values())
    return [path for folder in folders for path in Path(folder).glob(f"{group_prefix(label)}*")]


def processes_of(label: str) -> list[str]:
    """The servers and wardens of an owner."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(OSError):
                if f"{SERVER_MARKER}{label}".encode() in (folder / "cmdline").read_bytes():
                    found.append(folder.name)
    return found

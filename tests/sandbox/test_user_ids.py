"""An ordinary user has more than root in a sandbox where the machine grants a range of ids."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.backends.user_ids import IdRange, find_range, granted, run_mapped
from sandbox.errors import SandboxUnavailable
from tests.sandbox.ordinary_user import USER_ID, run_as_ordinary_user
from tests.sandbox.small_image import small_image

_FIRST, _COUNT = 200_000, 65_535


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        (f"{USER_ID}:100000:65536\n", (100_000, 65_536)),
        (f"# a word\nother:1:65536\n{USER_ID}:5:10\n{USER_ID}:300000:2000\n", (300_000, 2000)),
        (f"{USER_ID}:x:65536\n{USER_ID}:1\n", None),
        ("root:100000:65536\n", None),
    ],
)
def test_a_range_is_read_from_the_table(
    tmp_path: Path, text: str, expected: tuple[int, int] | None
) -> None:
    (tmp_path / "subuid").write_text(text)
    assert granted(tmp_path / "subuid", USER_ID) == expected
    assert granted(tmp_path / "none", USER_ID) is None


def test_a_named_user_is_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "subuid").write_text("root:100000:65536\n")
    assert granted(tmp_path / "subuid", 0) == (100_000, 65_536)


def test_caches_of_different_ranges_do_not_meet() -> None:
    helpers = (("newuidmap", "0", "5", "1", "1", "100000", "9"),) * 2
    labels = {
        IdRange(7, 9).label,
        IdRange(0, 1).label,
        IdRange(0, 10, helpers).label,
        find_range().label,
    }
    assert len(labels) in (3, 4)
    assert all("/" not in label for label in labels)


# `newuidmap` and `newgidmap` are setuid programs; here root itself writes what they would. The
# first lines are for a Python whose path holds a space, which no kernel takes.
_HELPER = """#!/bin/sh
'''exec' '{python}' -I "$0" "$@"
' '''
import socket, sys
with socket.socket(socket.AF_UNIX) as one:
    one.connect({place!r})
    one.sendall(" ".join([{name!r}, *sys.argv[1:]]).encode())
    raise SystemExit(one.recv(2) != b"ok")
"""


def _serve(server: socket.socket) -> None:
    while True:
        try:
            one, _address = server.accept()
        except OSError:
            return
        with one:
            name, pid, *numbers = one.recv(4096).decode().split()
            rows = [" ".join(numbers[at : at + 3]) for at in range(0, len(numbers), 3)]
            Path("/proc", pid, name).write_text("\n".join(rows) + "\n")
            one.sendall(b"ok")


@pytest.fixture
def home() -> Iterator[Path]:
    place = Path("/tmp") / f"ratchet-ids-{os.getpid()}"
    (place / "tars").mkdir(parents=True)
    (place / "tars/small.tar").write_bytes(small_image())
    (place / "tars/small.json").write_text('{"User": "ada"}')
    for name in ("uid_map", "gid_map"):
        text = _HELPER.format(python=sys.executable, place=str(place / "socket"), name=name)
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(place / "socket"))
    server.listen()
    (place / "socket").chmod(0o777)
    threading.Thread(target=_serve, args=(server,), daemon=True).start()
    if os.geteuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, USER_ID, USER_ID)
    yield place
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    shutil.rmtree(place)


_CODE = f"""
import json, os, pathlib, sys
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.pruning import prune
from sandbox.backends.tar_images import TarImages
from sandbox.backends.user_ids import IdRange, run_mapped
from sandbox.contracts import ImageSpec, Limits, NetworkPolicy
from sandbox.errors import SandboxUnavailable
from tests.sandbox.conformance import image_spec
home = pathlib.Path(sys.argv[1])
def helper(name, own): return (str(home / name), '0', str(own), '1', '1', '{_FIRST}', '{_COUNT}')
ids = IdRange(0, {_COUNT} + 1, (helper('uid_map', os.getuid()), helper('gid_map', os.getgid())))
said = []
def run(backend, image, line):
    with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
        done = sandbox.exec(['bash', '-c', line], timeout_seconds=20)
        said.append(done.stdout.decode() + done.stderr.decode())
        return sandbox.notes
backend = BubblewrapBackend(home / 'r', home / 'c', images=TarImages(home / 'tars'), ids=ids)
image = backend.prepare(ImageSpec((), docker_image='small'))
notes = run(backend, image, 'id -u; cat /home/ada/note; stat -c %u:%g /home/ada /etc/passwd')
(root,) = (backend.store.folder / 'layers').glob('root-*')
owner = os.stat(root / 'home/ada').st_uid
(home / 'tars/bad.tar').write_bytes(b'no tar')
try:
    backend.prepare(ImageSpec((), docker_image='bad'))
except SandboxUnavailable as error:
    said.append(str(error))
backend.close()
backend = BubblewrapBackend(home / 'r', home / 'host', ids=ids)
text = b'FROM a\\nWORKDIR /app\\nCOPY --chown=nobody data/ ./\\nRUN chown 7:8 run.sh\\nUSER mail\\n'
run(backend, backend.prepare(image_spec(text)), 'id -un; stat -c %u:%g one.txt run.sh')
for store in (*(home / 'c').iterdir(), *(home / 'host').iterdir()):
    for folder in ('layers', 'incoming'):
        run_mapped(ids, 'remove', str(store / folder))
left = [path.name for path in home.rglob('root-*')]
backend.close()
print(json.dumps([said, notes, owner, left]))
"""


@pytest.mark.bubblewrap
def test_an_ordinary_user_with_a_range_has_all_users(home: Path) -> None:
    if os.geteuid() != 0:  # who is not root cannot stand in for the setuid programs
        with pytest.raises(SandboxUnavailable):
            run_mapped(IdRange(0, 2, (("/bin/false",),)), "nothing")
        return
    done = run_as_ordinary_user(_CODE, str(home))
    assert done.returncode == 0, done.stderr
    said, notes, owner, left = json.loads(done.stdout)
    assert said[0] == "1000\nhers\n1000:1000\n0:0\n"
    assert said[1].startswith("the image's archive is broken")
    assert said[2] == "mail\n65534:65534\n7:8\n"
    assert owner == _FIRST + 999
    assert not any("only root exists" in note for note in notes)
    assert left == []

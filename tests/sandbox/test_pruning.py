"""The cache of layers keeps its budget, and takes nothing away that is in use."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.pruning import default_budget_bytes, prune, remove_folder
from sandbox.contracts import Image, Limits, NetworkPolicy
from sandbox.errors import SandboxUnavailable
from sandbox.reaper import reap
from tests.sandbox.conformance import image_spec, out
from tests.sandbox.ordinary_user import run_as_ordinary_user

pytestmark = pytest.mark.bubblewrap
_TEXTS = [f"FROM a\nRUN head -c 3000000 /dev/urandom > /{n}\n".encode() for n in range(3)]


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[BubblewrapBackend]:
    made = BubblewrapBackend(tmp_path / "r", tmp_path / "c")
    yield made
    made.close()


def _images(backend: BubblewrapBackend) -> list[Image]:
    return [backend.prepare(image_spec(text)) for text in _TEXTS]


def _age(backend: BubblewrapBackend, image: Image, seconds: float) -> None:
    path = backend.store.folder / "manifests" / f"{image.ref}.json"
    os.utime(path, (time.time() - seconds, time.time() - seconds))


@pytest.mark.slow
def test_a_full_cache_forgets_what_was_used_longest_ago(backend: BubblewrapBackend) -> None:
    folder = backend.store.folder
    images = _images(backend)
    assert prune(folder, 0) == 0  # all of them were used just now
    for age, image in ((3000, images[1]), (2000, images[0]), (1000, images[2])):
        _age(backend, image, age)
    assert prune(folder, 8_000_000, min_age_seconds=-1) == 1
    assert [backend.prepare(image_spec(text)).was_cached for text in _TEXTS] == [True, False, True]
    assert prune(folder, 0, min_age_seconds=-1) == 3
    left = {f"layers/{path.name}" for path in (folder / "layers").iterdir()}
    assert left == {backend.store.skeleton, backend.store.container_files}
    assert not any((folder / "incoming").iterdir())


def test_an_image_in_use_stays(backend: BubblewrapBackend) -> None:
    folder = backend.store.folder
    image = backend.prepare(image_spec())
    with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
        _age(backend, image, 1e6)
        assert prune(folder, 0, min_age_seconds=-1) == 0
        assert out(sandbox, "cat /app/data/one.txt") == "one\n"
    assert prune(folder, 0, min_age_seconds=-1) == 1
    with pytest.raises(SandboxUnavailable, match="prepare it again"):
        backend.start(image, Limits(), NetworkPolicy())
    again = backend.prepare(image_spec())
    assert not again.was_cached


def test_a_layer_without_an_image_goes(backend: BubblewrapBackend) -> None:
    folder = backend.store.folder
    name = backend.store.new_name()
    (folder / "incoming" / name / "deep").mkdir(parents=True)
    backend.store.publish(name, "layers/orphan")
    assert prune(folder, 1 << 40) == 0
    assert (folder / "layers/orphan").is_dir()  # a build may be about to name it
    prune(folder, 1 << 40, min_age_seconds=-1)
    assert not (folder / "layers/orphan").exists()


def test_two_prune_at_once_without_harm(backend: BubblewrapBackend) -> None:
    folder = backend.store.folder
    for image in _images(backend):
        _age(backend, image, 5000)
    code = (
        "import pathlib, sys\nfrom sandbox.backends.pruning import prune\n"
        "print(prune(pathlib.Path(sys.argv[1]), 0))"
    )
    root = Path(__file__).resolve().parents[2]
    line = [sys.executable, "-c", code, str(folder)]
    others = [subprocess.Popen(line, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    counts = [int(other.communicate()[0]) for other in others]
    assert [other.returncode for other in others] == [0, 0, 0]
    assert sum(counts) + prune(folder, 0) == 3


def test_broken_manifests_are_no_hindrance(backend: BubblewrapBackend) -> None:
    folder = backend.store.folder
    (folder / "manifests" / "bad.json").write_text("{")
    (folder / "manifests" / "worse.json").write_text('{"layers": ["layers/gone"]}')
    assert backend.store.manifest("bad") is None
    assert backend.store.manifest("worse") is None
    assert prune(folder, 1 << 40) == 0
    assert not (folder / "manifests" / "bad.json").exists()


def test_the_reaper_keeps_the_budget(backend: BubblewrapBackend) -> None:
    image = backend.prepare(image_spec())
    _age(backend, image, 5000)
    assert reap(backend.cache_dir).images == 0
    assert reap(backend.cache_dir, image_budget_bytes=0).images == 1
    assert 0 < default_budget_bytes(backend.cache_dir) <= 20 * 1024**3


def test_closed_folders_are_removed_too(tmp_path: Path) -> None:
    deep = tmp_path / "layer" / "closed" / "inside"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    deep.chmod(0o000)
    deep.parent.chmod(0o500)
    remove_folder(tmp_path / "layer")
    remove_folder(tmp_path / "layer")
    assert not (tmp_path / "layer").exists()


_SHARED = """
import os, pathlib, sys
from sandbox.backends.pruning import remove_folder
home = pathlib.Path(sys.argv[1])
(home / "layer" / "closed").mkdir(parents=True)
(home / "kept").write_text("x")
os.link(home / "kept", home / "layer" / "closed" / "file")
(home / "kept").chmod(0o444)
(home / "layer" / "closed").chmod(0o500)
remove_folder(home / "layer")
print((home / "layer").exists(), oct((home / "kept").stat().st_mode & 0o777))
"""


def test_a_file_that_others_share_keeps_its_mode() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o777)
        done = run_as_ordinary_user(_SHARED, home)
    assert (done.stdout, done.stderr) == ("False 0o444\n", "")

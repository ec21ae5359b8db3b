"""Exports: the same bytes every time, everything listed, every change found."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evolution.bundle import BundleError
from evolution.exporting import export_archive, export_files, verify_export
from evolution.reading import FoundBundle, find_bundles
from evolution.tar_stream import tar_gz
from evolution.writing import write_tree
from sandbox.contracts import SandboxFile
from tests.evolution.sample_dataset import BUNDLES, CHILD, SEED, load, sample_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An unpacked export."""
    path = tmp_path / "out"
    write_tree(export_files(sample_dataset(), load), path)
    return path


def test_an_export_is_the_same_bytes_every_time() -> None:
    first = b"".join(export_archive(sample_dataset(), load))
    assert first == b"".join(export_archive(sample_dataset(), load))
    assert first != b"".join(export_archive(sample_dataset(description=""), load))
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        members = archive.getmembers()
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
    assert {m.name.split("/")[0] for m in members} == {"sample-set-v3"}


def test_what_went_in_comes_out_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"".join(export_archive(sample_dataset(), load)))
    found = [f for f in find_bundles(tmp_path / "x.tar.gz") if isinstance(f, FoundBundle)]
    assert {f.bundle for f in found} == {SEED, CHILD}
    subprocess.run(["tar", "-xzf", "x.tar.gz"], cwd=tmp_path, check=True)
    assert verify_export(tmp_path / "sample-set-v3") == ()


def test_the_manifest_tells_all_that_is_known(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] == "3"
    seed, child = manifest["environments"]
    assert (seed["digest"], child["parent"], child["root"]) == (SEED.digest, *[SEED.digest] * 2)
    assert child["harbor_digest"] == CHILD.harbor_digest
    assert child["demands"][0]["checks"] == ["d1.decoded"]
    assert child["difficulty"][0] | {"n": 8, "low": 0.2} == child["difficulty"][0]
    assert (seed["canaries"], child["canaries"]) == ([], ["instruction.md"])
    assert child["path"] == "tasks/sample-g1"


def test_the_checksums_are_what_sha256sum_reads(folder: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "--quiet", "checksums.sha256"]
    assert subprocess.run(command, cwd=folder, check=False).returncode == 0
    listed = {
        line.split("  ")[1] for line in (folder / "checksums.sha256").read_text().splitlines()
    }
    files = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert files - listed == {"checksums.sha256", "tasks/sample-g0/environment/alias"}


def test_harbors_lists_name_every_environment(folder: Path) -> None:
    manifest = tomllib.loads((folder / "dataset.toml").read_text())
    assert manifest["dataset"]["name"] == "ratchet/sample-set"
    assert manifest["dataset"]["description"] == sample_dataset().description
    assert [(task["name"], task["digest"]) for task in manifest["tasks"]] == [
        ("ratchet/sample", f"sha256:{SEED.harbor_digest}"),
        ("ratchet/sample-g1", f"sha256:{CHILD.harbor_digest}"),
    ]
    (registry,) = json.loads((folder / "registry.json").read_text())
    assert [task["path"] for task in registry["tasks"]] == ["tasks/sample-g0", "tasks/sample-g1"]


def test_the_card_is_markdown_that_nobody_else_wrote(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert "2 environments of 1 lineage in" in text
    assert "Of 2 environments, 1 with canary lines" in text
    assert "<b>" not in text
    assert r"Apache-2.0 \| \<b\>" in text


def test_the_card_says_on_what_the_verdicts_rest(folder: Path) -> None:
    def basis(*known: bool | None) -> str:
        seed = sample_dataset().environments[0]
        rows = tuple(replace(seed, is_verified_on_image=each) for each in known)
        return sample_dataset(environments=rows).basis

    assert basis(True, True) == "Every environment was verified on its own image."
    assert basis(True, False, False, None) == (
        "2 environments were verified on the host's /usr, not on their image;"
        " of 1 it is not known where they were verified."
    )
    assert "of 2 it is not known" in sample_dataset().basis.casefold()
    for name in ("README.md", "manifest.json"):
        assert sample_dataset().basis in (folder / name).read_text()


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("Dockerfile")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("tasks/sample-g0/instruction.md", _flip),
        ("tasks/sample-g0/instruction.md", os.remove),
        ("tasks/sample-g0/solution/solve.sh", lambda path: path.chmod(0o644)),
        ("tasks/sample-g0/environment/alias", _relink),
        ("tasks/sample-g0/environment/alias", os.remove),
        ("tasks/sample-g0/environment/new", lambda path: path.write_text("x")),
        ("tasks/other", lambda path: path.write_text("x")),
        ("README.md", _flip),
        ("dataset.toml", _flip),
        ("registry.json", os.remove),
        ("manifest.json", os.remove),
        ("checksums.sha256", os.remove),
        ("checksums.sha256", lambda path: path.write_text("0  ../../etc/passwd\n")),
    ],
)
def test_every_change_to_an_export_is_found(
    folder: Path, path: str, change: Callable[[Path], None]
) -> None:
    assert verify_export(folder) == ()
    change(folder / path)
    assert verify_export(folder)


def test_any_flipped_byte_of_any_file_is_found(folder: Path) -> None:
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        before = path.read_bytes()
        if before:
            _flip(path)
            assert verify_export(folder), path
            path.write_bytes(before)
    assert verify_export(folder) == ()


def test_a_bundle_that_is_not_the_frozen_one_is_never_exported() -> None:
    with pytest.raises(BundleError, match="not the ones that were frozen"):
        list(export_files(sample_dataset(), lambda digest: SEED))
    seed = replace(sample_dataset().environments[0], harbor_digest="0" * 64)
    with pytest.raises(BundleError, match="Harbor digest"):
        list(export_files(sample_dataset(environments=(seed,)), load))


@pytest.mark.parametrize("folder_name", ["a/b", "..", "", "/x", "SAMPLE-G1"])
def test_a_folder_name_that_is_not_fit_is_refused(folder_name: str) -> None:
    seed, child = sample_dataset().environments
    dataset = sample_dataset(environments=(replace(seed, folder=folder_name), child))
    with pytest.raises(BundleError):
        list(export_files(dataset, load))


def test_an_export_holds_one_environment_at_a_time() -> None:
    loaded: list[str] = []

    def counting(digest: str) -> object:
        loaded.append(digest)
        return BUNDLES[digest]

    stream = export_files(sample_dataset(), counting)  # type: ignore[arg-type]
    next(stream)
    assert loaded == [SEED.digest]


def test_long_names_and_large_files_survive_the_tar(tmp_path: Path) -> None:
    files = [
        SandboxFile("d/" + "ü" * 120, os.urandom(200_000), 0o755),
        SandboxFile("d/empty", b"", 0o600),
        SandboxFile("d/link", link="x" * 150),
    ]
    data = b"".join(tar_gz(files))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for file in files:
            member = archive.getmember(file.path)
            assert member.linkname == (file.link or "")
            if file.link is None:
                content = archive.extractfile(member)
                assert content is not None
                assert hashlib.sha256(content.read()).hexdigest() == file.digest
                assert member.mode == file.mode

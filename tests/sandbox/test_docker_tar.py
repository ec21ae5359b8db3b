"""Archives from a container whose tar may be the solver's own."""

from __future__ import annotations

import io
import tarfile

import pytest

from sandbox.backends.docker_tar import Collection, TarReader
from sandbox.contracts import ArtifactSpec
from sandbox.errors import SandboxUnavailable, TooDeep, TooLarge
from tests.sandbox.conformance import Bench, sh

_SOURCES = (ArtifactSpec("/app"),)


def _reader(cap_bytes: int, *sources: ArtifactSpec) -> TarReader:
    return TarReader(Collection(sources or _SOURCES, cap_bytes))


def _header(name: bytes, size: bytes, kind: bytes = b"0") -> bytes:
    block = bytearray(512)
    block[: len(name)] = name
    block[100:108] = b"0000644\0"
    block[124 : 124 + len(size)] = size
    block[156:157] = kind
    return bytes(block)


def _long(kind: bytes, name: bytes) -> bytes:
    padded = name + b"\0" * (-len(name) % 512)
    return _header(b"././@LongLink", b"%o" % len(name), kind) + padded


@pytest.mark.parametrize("size", [b"-00000001000", b"-1", b"+7", b"1_0", b"0o7", b"8", b"x"])
def test_a_size_that_is_no_plain_number_is_no_archive(size: bytes) -> None:
    reader = _reader(1000)
    with pytest.raises(SandboxUnavailable, match="makes no sense"):
        reader.feed(_header(b"./app/x", size) + bytes(4096))


@pytest.mark.parametrize("size", [b"\x80" + b"\xff" * 11, b"\xff" * 12, b"77777777777"])
def test_a_huge_size_is_too_large_at_once(size: bytes) -> None:
    with pytest.raises(TooLarge):
        _reader(1000).feed(_header(b"./app/x", size))


def test_a_negative_length_of_a_name_does_not_turn_back() -> None:
    with pytest.raises(SandboxUnavailable):
        _reader(1000).feed(_header(b"././@LongLink", b"-1000", b"L") + bytes(4096))


@pytest.mark.parametrize("kind", [b"0", b"2", b"5"])
def test_a_path_of_very_many_parts_is_too_deep_whatever_it_is(kind: bytes) -> None:
    name = b"./app/" + b"a/" * 200_000 + b"x"
    reader = _reader(1 << 20, ArtifactSpec("/app", ("*.log",)))
    with pytest.raises(TooDeep):
        reader.feed(_long(b"L", name) + _header(b"", b"0", kind))


def test_a_path_that_leaves_its_folder_is_no_archive() -> None:
    with pytest.raises(SandboxUnavailable, match="leaves its folder"):
        _reader(1000).feed(_header(b"./app/../../etc/passwd", b"0"))


def test_what_nobody_asked_for_is_passed_over_and_what_was_comes_byte_by_byte() -> None:
    total = io.BytesIO()
    with tarfile.open(fileobj=total, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in (("./etc/shadow", b"secret"), ("./app/a", b"x" * 700), ("./apple", b"1")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    found = Collection(_SOURCES, 1000)
    reader = TarReader(found)
    for byte in total.getvalue():
        reader.feed(bytes((byte,)))
    assert reader.is_done
    assert [(file.path, len(file.data)) for file in found.files()] == [("/app/a", 700)]


def test_half_an_archive_is_not_taken_for_a_whole_one() -> None:
    reader = _reader(10_000)
    reader.feed(_header(b"./app/x", b"1000") + bytes(100))
    assert (reader.is_begun, reader.is_done) == (True, False)


@pytest.mark.docker
def test_what_a_killed_tar_did_not_read_the_engine_reads(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        sh(sandbox, "mkdir -p /app/out && echo x >/app/out/a")
        sh(sandbox, "printf '#!/bin/sh\\nkill -9 $$\\n' >/usr/local/bin/tar")
        sh(sandbox, "chmod +x /usr/local/bin/tar; ln -sf /usr/local/bin/tar /bin/tar")
        found = sandbox.read_files((ArtifactSpec("/app/out"),), cap_bytes=1000)
    assert [(file.path, file.data) for file in found] == [("/app/out/a", b"x\n")]

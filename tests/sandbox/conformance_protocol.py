"""What needs no real process: the fake passes it too (each check brings its script)."""

from __future__ import annotations

import time

import pytest

from sandbox.backends.fake import FakeCommand
from sandbox.contracts import (
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ImageSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
)
from sandbox.errors import ImageBuildFailed, Refused, SandboxUnavailable, TooLarge
from tests.sandbox.conformance_bench import DOCKERFILE, MIB, Bench, content, everything, perl, sh


def a_command_that_fails_is_a_result(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(3, b"o", b"e")]) as sandbox:
        result = sh(sandbox, "printf o; printf e >&2; exit 3")
    assert (result.exit_status, result.stdout, result.stderr) == (3, b"o", b"e")
    assert not result.timed_out
    assert not result.truncated


def bytes_that_are_no_text_come_as_they_are(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(stdout=bytes(range(256)))]) as sandbox:
        result = perl(sandbox, "binmode STDOUT; print pack 'C*', 0..255")
    assert result.stdout == bytes(range(256))


def output_beyond_the_cap_is_cut_and_said_so(bench: Bench) -> None:
    size = OUTPUT_CAP_BYTES + 3
    with bench.start(script=[FakeCommand(stdout=bytes(size))]) as sandbox:
        result = sh(sandbox, f"head -c {size} /dev/zero")
    assert (len(result.stdout), result.truncated) == (OUTPUT_CAP_BYTES, True)


def files_come_back_as_they_went_in(bench: Bench) -> None:
    files = (
        SandboxFile("a b/ünï\ncode", b"\0\xff", 0o600),
        SandboxFile("empty", b""),
        SandboxFile("link", mode=0o777, link="../../etc/passwd"),
        SandboxFile("not-\udcff-utf8", b"x", 0o755),
        SandboxFile("odd-link", mode=0o777, link="ü\n/\udcfe"),
        SandboxFile("-n", b"dash"),
        SandboxFile("x" * 255, b"long", 0o400),
        SandboxFile("/".join(["d" * 60] * 20), b"far down"),
    )
    with bench.start() as sandbox:
        sandbox.write_files(files, "/srv/new folder")
        found = everything(sandbox, "/srv/new folder")
    assert {f.path: (f.data, f.mode, f.link) for f in found} == {
        f"/srv/new folder/{f.path}": (f.data, f.mode, f.link) for f in files
    }
    assert [f.path for f in found] == sorted(f.path for f in found)


def writing_replaces_what_is_there(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("x/y/z", b"1"), SandboxFile("f", b"1")], "/srv")
        sandbox.write_files([SandboxFile("x", b"2"), SandboxFile("f/g", b"2")], "/srv")
        assert content(sandbox, "/srv") == {"x": b"2", "f/g": b"2"}


def writing_leaves_alone_what_it_does_not_name(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("d/old", b"1"), SandboxFile("d/same", b"1")], "/srv")
        sandbox.write_files([SandboxFile("d/new", b"2"), SandboxFile("d/same", b"2")], "/srv")
        assert content(sandbox, "/srv") == {"d/old": b"1", "d/new": b"2", "d/same": b"2"}


def reading_takes_files_and_trees_and_leaves_out(bench: Bench) -> None:
    files = [SandboxFile(p, p.encode()) for p in ("a.txt", "b.log", "d/c.log", "d/e.txt")]
    with bench.start() as sandbox:
        sandbox.write_files(files, "/srv")
        assert [f.path for f in everything(sandbox, "/srv", "*.log")] == [
            "/srv/a.txt",
            "/srv/d/e.txt",
        ]
        assert [f.path for f in everything(sandbox, "/srv", "d")] == ["/srv/a.txt", "/srv/b.log"]
        assert [f.path for f in everything(sandbox, "/srv/a.txt")] == ["/srv/a.txt"]
        assert everything(sandbox, "/srv/missing") == ()
        assert everything(sandbox, "/srv/a.txt/below a file") == ()
        both = [ArtifactSpec("/srv"), ArtifactSpec("/srv/d")]
        assert len(sandbox.read_files(both, cap_bytes=MIB)) == 4


def reading_more_than_the_cap_is_refused(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("big", b"x" * 100_000)], "/srv")
        assert len(sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=200_000)) == 1
        with pytest.raises(TooLarge):
            sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=50_000)
        assert len(sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=100_000)) == 1


def removing_is_complete_and_forgiving(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("a/b", b""), SandboxFile("ab", b"")], "/srv")
        sandbox.remove_tree("/srv/a")
        sandbox.remove_tree("/srv/a")
        sandbox.remove_tree("/nowhere/at/all")
        sandbox.remove_tree("/srv/ab/below a file")
        assert [f.path for f in everything(sandbox, "/srv")] == ["/srv/ab"]


def a_stopped_sandbox_says_so(bench: Bench) -> None:
    sandbox = bench.start(script=[FakeCommand()])
    sandbox.stop()
    sandbox.stop()
    with pytest.raises(SandboxUnavailable):
        sh(sandbox, "true")
    with pytest.raises(SandboxUnavailable):
        sandbox.write_files([SandboxFile("a", b"")], "/srv")
    with pytest.raises(SandboxUnavailable):
        everything(sandbox, "/srv")
    with pytest.raises(SandboxUnavailable):
        sandbox.remove_tree("/srv/a")
    with pytest.raises(SandboxUnavailable):
        sandbox.kill_all()
    assert sandbox.usage().oom_kills == 0


def leaving_by_an_exception_stops_it_too(bench: Bench) -> None:
    held = bench.start()
    with pytest.raises(KeyError), held:
        raise KeyError("of the caller")
    with pytest.raises(SandboxUnavailable):
        everything(held, "/srv")


def an_image_is_built_once(bench: Bench) -> None:
    backend = bench.backend
    spec = bench.spec(DOCKERFILE + f"ENV AT={time.time_ns()}\n".encode())
    first, second = backend.prepare(spec), backend.prepare(spec)
    assert (first.was_cached, second.was_cached) == (False, True)
    assert first.digest == second.digest == spec.digest
    assert (first.ref, first.workdir) == (second.ref, "/app")
    assert first.backend == second.backend


def what_cannot_be_built_is_told_apart(bench: Bench) -> None:
    backend = bench.backend
    broken = bench.spec(b"FROM debian:bookworm-slim\nWORKDIR\n")
    for spec in (
        ImageSpec((), is_host_root_compatible=bench.spec().is_host_root_compatible),
        broken,
    ):
        with pytest.raises(ImageBuildFailed):
            backend.prepare(spec)
    stages = b"FROM debian:bookworm-slim AS one\nFROM debian:bookworm-slim\n"
    beyond = {r"\(FROM\)": stages, "ONBUILD": b"FROM debian:bookworm-slim\nONBUILD RUN true\n"}
    for word, dockerfile in beyond.items():
        if bench.has_docker_builder:
            assert backend.prepare(bench.spec(dockerfile)).workdir == "/"
            continue
        with pytest.raises(Refused, match=f"{word}.*Docker"):
            backend.prepare(bench.spec(dockerfile))


def a_network_that_cannot_be_given_is_refused_by_name(bench: Bench) -> None:
    backend = bench.backend
    image = backend.prepare(bench.spec())
    hosts = ("example.org",)
    for mode in set(NetworkMode) - bench.offered:
        with pytest.raises(Refused, match=mode.value):
            backend.start(image, Limits(), NetworkPolicy(mode, hosts))
    assert NetworkMode.NO_NETWORK in bench.offered


def a_timeout_is_told(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(137, timed_out=True)]) as sandbox:
        result = sh(sandbox, "sleep 60", 0.3)
    assert result.timed_out
    assert result.seconds < 8


def what_is_not_enforced_is_listed(bench: Bench) -> None:
    lines = bench.backend.enforcement()
    assert all(line and "\n" not in line for line in lines)
    assert len(set(lines)) == len(lines)


CHECKS = (
    a_command_that_fails_is_a_result,
    bytes_that_are_no_text_come_as_they_are,
    output_beyond_the_cap_is_cut_and_said_so,
    files_come_back_as_they_went_in,
    writing_replaces_what_is_there,
    writing_leaves_alone_what_it_does_not_name,
    reading_takes_files_and_trees_and_leaves_out,
    reading_more_than_the_cap_is_refused,
    removing_is_complete_and_forgiving,
    a_stopped_sandbox_says_so,
    leaving_by_an_exception_stops_it_too,
    an_image_is_built_once,
    what_cannot_be_built_is_told_apart,
    a_network_that_cannot_be_given_is_refused_by_name,
    a_timeout_is_told,
    what_is_not_enforced_is_listed,
)

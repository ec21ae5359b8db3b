"""What only a container has: its driver, its disk that is watched, an engine that is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox.backends.docker import DockerBackend
from sandbox.backends.docker_sandbox import DockerSandbox
from sandbox.base import Sandbox
from sandbox.contracts import (
    ArtifactSpec,
    Limits,
    NetworkPolicy,
    SandboxFile,
    SolverSpec,
    TrialSpec,
    VerifierSpec,
)
from sandbox.errors import SandboxUnavailable, TooLarge
from sandbox.trial import Runner
from tests.sandbox.conformance import DOCKERFILE, MIB, Bench, everything, out, sh
from tests.sandbox.fragile import Proxy

pytestmark = pytest.mark.docker


@contextmanager
def calls_of(backend: DockerBackend) -> Iterator[list[str]]:
    """The requests to the engine, as they are answered."""
    seen: list[str] = []

    def note(answer: Any, **_options: object) -> None:
        seen.append(f"{answer.request.method} {answer.request.path_url.partition('?')[0]}")

    hooks = backend.engine.api.hooks["response"]
    hooks.append(note)
    try:
        yield seen
    finally:
        hooks.remove(note)


def test_a_trial_costs_few_calls_of_the_engine(docker: DockerBackend, docker_bench: Bench) -> None:
    verifier = VerifierSpec(
        (SandboxFile("test.sh", b"#!/bin/bash\ncat /app/out > /logs/verifier/reward.txt\n"),),
        artifacts=(ArtifactSpec("/app/out"),),
    )
    solver = SolverSpec("oracle", (SandboxFile("x"),), "echo 1 > /app/out")
    spec = TrialSpec(docker_bench.spec(), solver, verifier)
    runner = Runner(docker)
    runner.run(spec)
    with calls_of(docker) as seen:
        assert runner.run(spec).is_passed
    # For each of two sandboxes: create, attach, start, look where it writes. They are removed
    # beside the work, as those of the trial before may still be.
    assert len([call for call in seen if not call.startswith("DELETE ")]) == 8, seen


def _beats(sandbox: Sandbox) -> int:
    return int(out(sandbox, "wc -l < /app/beats"))


def test_a_service_lives_on_when_files_were_read_and_written(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        sh(sandbox, "head -c 3M /dev/zero > /srv/big; while sleep 0.02; do echo >> beats; done &")
        for turn in range(3):
            sandbox.write_files([SandboxFile("f", b"1")], "/srv/d")
            assert len(everything(sandbox, "/srv/d")) == 1
            with pytest.raises(TooLarge):
                sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=MIB)
            sandbox.remove_tree("/srv/d")
            before = _beats(sandbox)
            time.sleep(0.5)
            assert _beats(sandbox) > before, turn


@pytest.mark.parametrize("tools", ["tar", "head tar", "tar head cat"])
def test_images_without_tools_are_served_by_the_engine(docker_bench: Bench, tools: str) -> None:
    step = f"RUN cd /usr/bin && rm {tools}\n".encode()
    files = (
        SandboxFile("a b/ünï", b"\0\xff", 0o600),
        SandboxFile("a b/run", b"x" * 100_000, 0o755),
        SandboxFile("link", mode=0o777, link="../../etc/passwd"),
        SandboxFile("empty/", mode=0o750),
    )
    with docker_bench.start(spec=docker_bench.spec(DOCKERFILE + step)) as sandbox:
        sh(sandbox, "ln -s /etc /srv/down; mkdir -p /srv/in/f; ln /etc/hostname.x /srv/hard")
        sandbox.write_files(files, "/srv/in")
        sandbox.write_files([SandboxFile("f", b"file"), SandboxFile("g/h", b"h")], "/srv/in")
        sandbox.write_files([SandboxFile("secret", b"new")], "/srv/down")
        assert sh(sandbox, "[ -e /etc/secret ]").exit_status == 1
        found = sandbox.read_files(
            [ArtifactSpec("/srv/in", has_folders=True), ArtifactSpec("/nowhere")], cap_bytes=MIB
        )
        assert {f.path: (f.data, f.mode, f.link) for f in found} == {
            **{f"/srv/in/{f.path}": (f.data, f.mode, f.link) for f in files},
            "/srv/in/f": (b"file", 0o644, None),
            "/srv/in/g/h": (b"h", 0o644, None),
        }
        sh(sandbox, "rm -rf /srv/down; ln -s /etc /srv/down; ln /srv/in/f /srv/in/g/same")
        assert everything(sandbox, "/srv/down/passwd") == ()
        assert [f.data for f in everything(sandbox, "/srv/in/g")] == [b"h", b"file"]
        with pytest.raises(TooLarge):
            sandbox.read_files([ArtifactSpec("/srv/in")], cap_bytes=50_000)
        sandbox.remove_tree("/srv/in")
        assert everything(sandbox, "/srv/in") == ()
        assert sh(sandbox, "echo out; echo err >&2; exit 4").stderr == b"err\n"


def test_many_files_that_are_too_much_are_ended_in_time(docker_bench: Bench) -> None:
    bomb = "for n in $(seq 500); do head -c 2M /dev/zero > /var/tmp/$n; sleep 0.02; done; echo over"
    with docker_bench.start(Limits(disk_bytes=20 * MIB)) as sandbox:
        started = time.monotonic()
        result = sh(sandbox, bomb, 60)
        assert (result.stdout, result.timed_out, result.exit_status) == (b"", False, 137)
        assert time.monotonic() - started < 30
        usage = sandbox.usage()
        assert usage.is_disk_full
        assert "disk" in usage.struck
        assert out(sandbox, "echo usable") == "usable\n"


def test_what_is_written_to_a_volume_counts(docker_bench: Bench) -> None:
    spec = docker_bench.spec(DOCKERFILE + b"VOLUME /data\n")
    with docker_bench.start(Limits(disk_bytes=20 * MIB), spec=spec) as sandbox:
        sh(sandbox, "for n in 1 2 3; do head -c 9M /dev/zero > /data/$n; done")
        assert sandbox.usage().is_disk_full


def test_what_we_put_there_does_not_count(docker_bench: Bench) -> None:
    with docker_bench.start(Limits(disk_bytes=2 * MIB)) as sandbox:
        sandbox.write_files([SandboxFile("big", b"x" * (5 * MIB))], "/srv")
        assert sh(sandbox, "head -c 500K /dev/zero > /srv/mine").exit_status == 0
        assert not sandbox.usage().is_disk_full


def test_input_reaches_another_user_and_leaves_nothing(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        for user in (None, "nobody"):
            assert out(sandbox, "cat; id -u >&2", stdin=b"in\0put" * 50_000, user=user).count("in")
            assert out(sandbox, "ls -A / | grep ratchet || :") == ""


def test_a_service_of_another_user_lives_on(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        service = "while sleep 0.02; do echo tick; echo >> /tmp/beats; done &"
        assert sh(sandbox, service, user="nobody").exit_status == 0
        before = int(out(sandbox, "sleep 0.3; wc -l < /tmp/beats"))
        assert int(out(sandbox, "sleep 0.5; wc -l < /tmp/beats", user="nobody")) > before + 5


def test_a_container_removed_from_outside_is_told(
    docker: DockerBackend, docker_bench: Bench
) -> None:
    sandbox = docker_bench.start()
    assert isinstance(sandbox, DockerSandbox)
    docker.engine.api.remove_container(sandbox.container.name, force=True)
    with pytest.raises(SandboxUnavailable, match="removed from outside"):
        sh(sandbox, "true")
    sandbox.stop()


def test_what_an_engine_could_not_remove_goes_when_it_is_back(
    docker: DockerBackend, docker_bench: Bench, tmp_path: Path
) -> None:
    engine = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    proxy = Proxy(tmp_path / "engine", engine)
    backend = DockerBackend(
        docker.runtime_dir,
        docker.cache_dir,
        url=f"unix://{tmp_path}/engine",
        places=docker.places,
    )
    image = backend.prepare(docker_bench.spec())
    sandbox = backend.start(image, Limits(), NetworkPolicy())
    name = sandbox.container.name
    proxy.cut()
    sandbox.stop()
    (tmp_path / "engine").unlink()
    Proxy(tmp_path / "engine", engine)
    assert docker.engine.api.containers(all=True, filters={"name": name})
    backend.start(image, Limits(), NetworkPolicy()).stop()
    assert not docker.engine.api.containers(all=True, filters={"name": name})
    backend.close()


def test_no_signal_from_inside_ends_or_halts_the_driver(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        script = "for n in {1..64}; do kill -$n 1 2>/dev/null; sleep 0.01; done; echo all"
        assert out(sandbox, script).strip() == "all"
        sandbox.write_files([SandboxFile("f", b"1")], "/srv")
        assert [f.data for f in everything(sandbox, "/srv/f")] == [b"1"]


def test_a_lost_null_device_and_a_spoiled_cat_hold_nobody_up(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        sh(sandbox, "rm /dev/null; mkfifo /dev/null; chmod 0 /usr/bin/cat")
        started = time.monotonic()
        sandbox.write_files([SandboxFile("f", b"1")], "/srv")
        assert out(sandbox, "echo on; [[ -p /dev/null ]] && read -t 5 line; echo $?").split() == [
            "on",
            "1",
        ]
        assert [f.data for f in everything(sandbox, "/srv/f")] == [b"1"]
        assert time.monotonic() - started < 15

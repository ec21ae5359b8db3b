"""What every back-end must do, as plain functions of a `Bench`.

`PROTOCOL` needs no real process, so the fake passes it too (each case brings its script);
`REAL` needs real processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from sandbox.backends.fake import FakeCommand
from sandbox.base import Backend, Sandbox
from sandbox.contracts import (
    OUTPUT_CAP_BYTES,
    ArtifactSpec,
    ExecResult,
    ImageSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
)
from sandbox.errors import ImageBuildFailed, Refused, SandboxUnavailable, TooLarge

DOCKERFILE = b"FROM debian:bookworm-slim\nWORKDIR /app\nCOPY data/ /app/data/\n"
MIB = 1024 * 1024
NO_LIMITS = Limits()


def image_spec(dockerfile: bytes = DOCKERFILE, *files: SandboxFile) -> ImageSpec:
    """An image for the tests; two small files lie under /app/data."""
    data = (
        SandboxFile("data/one.txt", b"one\n"),
        SandboxFile("data/run.sh", b"#!/bin/sh\n", 0o755),
    )
    return ImageSpec((SandboxFile("Dockerfile", dockerfile), *data, *files), None, None, (), True)


@dataclass
class Bench:
    """A back-end to be tried. `with_script` gives one that follows a script, where that matters."""

    with_script: Callable[[Sequence[FakeCommand]], Backend]

    def start(self, limits: Limits = NO_LIMITS, script: Sequence[FakeCommand] = ()) -> Sandbox:
        """A fresh sandbox of the small image."""
        backend = self.with_script(script)
        return backend.start(backend.prepare(image_spec()), limits, NetworkPolicy())


def sh(sandbox: Sandbox, command: str, seconds: float = 20.0, **options: object) -> ExecResult:
    """Run a line of bash."""
    line = ["bash", "-c", command]
    return sandbox.exec(line, timeout_seconds=seconds, **options)  # type: ignore[arg-type]


def out(sandbox: Sandbox, command: str, seconds: float = 20.0, **options: object) -> str:
    """The standard output of a line of bash that must succeed."""
    result = sh(sandbox, command, seconds, **options)
    assert result.exit_status == 0, result
    return result.stdout.decode()


def everything(sandbox: Sandbox, path: str, *exclude: str) -> tuple[SandboxFile, ...]:
    """All files below a path."""
    return sandbox.read_files([ArtifactSpec(path, tuple(exclude))], cap_bytes=50 * MIB)


# -- the protocol -----------------------------------------------------------------------------


def a_command_that_fails_is_a_result(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(3, b"o", b"e")]) as sandbox:
        result = sh(sandbox, "printf o; printf e >&2; exit 3")
    assert (result.exit_status, result.stdout, result.stderr) == (3, b"o", b"e")
    assert not result.timed_out
    assert not result.truncated


def bytes_that_are_no_text_come_as_they_are(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(stdout=bytes(range(256)))]) as sandbox:
        program = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
        result = sandbox.exec(["python3", "-c", program], timeout_seconds=20)
    assert result.stdout == bytes(range(256))


def files_come_back_as_they_went_in(bench: Bench) -> None:
    files = (
        SandboxFile("a b/ünï\ncode", b"\0\xff", 0o600),
        SandboxFile("empty", b""),
        SandboxFile("link", mode=0o777, link="../../etc/passwd"),
        SandboxFile("not-\udcff-utf8", b"x", 0o755),
        SandboxFile("-n", b"dash"),
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
        assert {f.path: f.data for f in everything(sandbox, "/srv")} == {
            "/srv/x": b"2",
            "/srv/f/g": b"2",
        }


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
        both = [ArtifactSpec("/srv"), ArtifactSpec("/srv/d")]
        assert len(sandbox.read_files(both, cap_bytes=MIB)) == 4


def reading_more_than_the_cap_is_refused(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("big", b"x" * 100_000)], "/srv")
        assert len(sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=200_000)) == 1
        with pytest.raises(TooLarge):
            sandbox.read_files([ArtifactSpec("/srv")], cap_bytes=50_000)


def removing_is_complete_and_forgiving(bench: Bench) -> None:
    with bench.start() as sandbox:
        sandbox.write_files([SandboxFile("a/b", b""), SandboxFile("ab", b"")], "/srv")
        sandbox.remove_tree("/srv/a")
        sandbox.remove_tree("/srv/a")
        sandbox.remove_tree("/nowhere/at/all")
        assert [f.path for f in everything(sandbox, "/srv")] == ["/srv/ab"]


def a_stopped_sandbox_says_so(bench: Bench) -> None:
    sandbox = bench.start(script=[FakeCommand()])
    sandbox.stop()
    sandbox.stop()
    with pytest.raises(SandboxUnavailable):
        sh(sandbox, "true")
    with pytest.raises(SandboxUnavailable):
        sandbox.write_files([SandboxFile("a", b"")], "/srv")


def an_image_is_built_once(bench: Bench) -> None:
    backend = bench.with_script(())
    spec = image_spec(DOCKERFILE + f"ENV AT={time.time_ns()}\n".encode())
    first, second = backend.prepare(spec), backend.prepare(spec)
    assert (first.was_cached, second.was_cached) == (False, True)
    assert first.digest == second.digest == spec.digest
    assert (first.backend, first.workdir) == (backend.name, "/app")


def what_cannot_be_built_is_told_apart(bench: Bench) -> None:
    backend = bench.with_script(())
    with pytest.raises(ImageBuildFailed):
        backend.prepare(ImageSpec((), is_host_root_compatible=True))
    with pytest.raises(Refused, match="Docker"):
        backend.prepare(image_spec(b"FROM a AS x\nFROM b\n"))
    with pytest.raises(Refused, match="ENTRYPOINT"):
        backend.prepare(image_spec(b'FROM a\nENTRYPOINT ["x"]\n'))


def a_network_that_cannot_be_given_is_refused_by_name(bench: Bench) -> None:
    backend = bench.with_script(())
    image = backend.prepare(image_spec())
    for mode in (NetworkMode.PUBLIC, NetworkMode.ALLOWLIST):
        with pytest.raises(Refused, match=mode.value):
            backend.start(image, Limits(), NetworkPolicy(mode))


def a_timeout_is_told(bench: Bench) -> None:
    with bench.start(script=[FakeCommand(137, timed_out=True)]) as sandbox:
        result = sh(sandbox, "sleep 60", 0.3)
    assert result.timed_out
    assert result.seconds < 5


PROTOCOL = (
    a_command_that_fails_is_a_result,
    bytes_that_are_no_text_come_as_they_are,
    files_come_back_as_they_went_in,
    writing_replaces_what_is_there,
    reading_takes_files_and_trees_and_leaves_out,
    reading_more_than_the_cap_is_refused,
    removing_is_complete_and_forgiving,
    a_stopped_sandbox_says_so,
    an_image_is_built_once,
    what_cannot_be_built_is_told_apart,
    a_network_that_cannot_be_given_is_refused_by_name,
    a_timeout_is_told,
)


# -- real processes ---------------------------------------------------------------------------

_STUBBORN = """
trap '' TERM HUP INT
(setsid sleep 300 &)
(setsid bash -c 'trap "" TERM; while :; do sleep 300; done' &)
python3 -c '
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)
os.wait()
'
sleep 300 & kill -STOP $!
echo ready
while :; do sleep 1; done
"""


def _living(sandbox: Sandbox) -> list[str]:
    lines = out(
        sandbox, "for p in /proc/[0-9]*; do echo ${p#/proc/} $(tr '\\0' ' ' <$p/cmdline); done"
    )
    return [line for line in lines.splitlines() if "sleep" in line or "trap" in line]


def a_timeout_ends_everything(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, _STUBBORN, 1.0)
        assert result.timed_out
        assert result.stdout == b"ready\n"
        assert result.seconds < 4
        assert _living(sandbox) == []
        assert out(sandbox, "echo still here") == "still here\n"


def kill_all_ends_what_was_left_behind(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(
            sandbox,
            "sleep 300 & (setsid sleep 301 &) ; nohup sleep 302 >/dev/null & touch /app/kept",
        )
        assert len(_living(sandbox)) == 3
        sandbox.kill_all()
        assert _living(sandbox) == []
        assert out(sandbox, "ls /app/kept") == "/app/kept\n"


def a_service_lives_on_and_may_write(bench: Bench) -> None:
    service = "while sleep 0.05; do echo tick; echo tock >&2; date >> /app/beats; done &"
    with bench.start() as sandbox:
        assert sh(sandbox, service).seconds < 5
        time.sleep(0.2)
        before = int(out(sandbox, "wc -l < /app/beats"))
        time.sleep(0.3)
        assert int(out(sandbox, "wc -l < /app/beats")) > before


def output_is_capped_and_nobody_blocks(bench: Bench) -> None:
    with bench.start() as sandbox:
        result = sh(sandbox, f"head -c {OUTPUT_CAP_BYTES + 5 * MIB} /dev/zero; echo end >&2")
    assert (len(result.stdout), result.stderr) == (OUTPUT_CAP_BYTES, b"end\n")
    assert result.truncated
    assert result.exit_status == 0


def standard_input_is_fed(bench: Bench) -> None:
    with bench.start() as sandbox:
        data = b"0123456789" * 300_000
        assert out(sandbox, "wc -c", stdin=data).strip() == "3000000"
        assert out(sandbox, "head -c 5", stdin=data) == "01234"
        assert out(sandbox, "cat; echo none") == "none\n"


def environment_workdir_and_user_are_kept(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, "pwd; echo $A; echo $HOME; id -u; ls data") == (
            "/app\n\n/root\n0\none.txt\nrun.sh\n"
        )
        assert out(sandbox, "pwd; echo $A", env=[("A", "b c")], workdir="/tmp") == "/tmp\nb c\n"
        assert out(sandbox, "env | sort | cut -d= -f1").split() == [
            *("HOME", "HOSTNAME", "PATH", "PWD", "SHLVL", "_"),
        ]


def what_cannot_run_is_a_result(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert sandbox.exec(["no-such-program"], timeout_seconds=5).exit_status == 127
        assert sandbox.exec(["/etc/passwd"], timeout_seconds=5).exit_status == 126
        assert sandbox.exec(["true"], timeout_seconds=5, workdir="/nowhere").exit_status == 126
        assert sh(sandbox, "kill -SEGV $$").exit_status == 128 + 11
        with pytest.raises(Refused, match="nobody-knows"):
            sandbox.exec(["true"], timeout_seconds=5, user="nobody-knows")
        with pytest.raises(Refused, match="plain path"):
            sandbox.write_files([SandboxFile("../x", b"")], "/app")


def links_are_not_followed(bench: Bench) -> None:
    with bench.start() as sandbox:
        sh(sandbox, "echo old > /etc/secret; ln -s /etc /app/down; ln -s /etc/secret /app/file")
        sh(sandbox, "ln /etc/secret /app/hard; mkfifo /app/pipe; ln -s /app/loop /app/loop")
        sandbox.write_files([SandboxFile("secret", b"new")], "/app/down")
        sandbox.write_files(
            [SandboxFile(n, b"new") for n in ("file", "hard", "pipe", "loop")], "/app"
        )
        assert out(sandbox, "cat /etc/secret; cat /app/down/secret") == "old\nnew"
        assert out(sandbox, "cat /app/file /app/hard /app/pipe /app/loop") == "new" * 4
        sh(sandbox, "rm -rf /app/down; ln -s /etc /app/down; mkfifo /app/pipe2")
        assert everything(sandbox, "/app/down/secret") == ()
        assert [f.link for f in everything(sandbox, "/app/down")] == ["/etc"]
        assert "/app/pipe2" not in [f.path for f in everything(sandbox, "/app")]
        sandbox.remove_tree("/app/down/secret")
        sandbox.remove_tree("/app/down")
        assert out(sandbox, "cat /etc/secret") == "old\n"


def a_very_deep_tree_is_removed(bench: Bench) -> None:
    program = "import os\nfor _ in range(2000):\n os.mkdir('d'); os.chdir('d')\nopen('f','w')"
    with bench.start() as sandbox:
        sandbox.exec(["python3", "-c", program], timeout_seconds=20, workdir="/srv")
        with pytest.raises(TooLarge, match="deep"):
            everything(sandbox, "/srv")
        sandbox.remove_tree("/srv/d")
        assert out(sandbox, "ls /srv") == ""


def every_sandbox_is_fresh_and_alone(bench: Bench) -> None:
    backend = bench.with_script(())
    image = backend.prepare(image_spec())

    def visit(number: int) -> str:
        with backend.start(image, Limits(cpus=1), NetworkPolicy()) as sandbox:
            before = out(sandbox, "ls /app /tmp /dev/shm")
            sh(sandbox, f"echo {number} | tee /app/mine /tmp/mine /dev/shm/mine /app/data/one.txt")
            time.sleep(0.05)
            assert out(sandbox, "cat /app/mine /dev/shm/mine") == f"{number}\n" * 2
            return before

    with ThreadPoolExecutor(4) as pool:
        seen = set(pool.map(visit, range(12)))
    assert seen == {"/app:\ndata\n\n/dev/shm:\n\n/tmp:\n"}


def usage_is_counted(bench: Bench) -> None:
    program = "x = b'x' * (80 << 20)\nfor n in range(2_000_000): pass\n"
    program += "open('/app/f', 'wb').write(x[:5 << 20])"
    with bench.start() as sandbox:
        sandbox.exec(["python3", "-c", program], timeout_seconds=20)
        usage = sandbox.usage()
    assert 80 * MIB < (usage.peak_memory_bytes or 0) < 130 * MIB
    assert 0.02 < (usage.cpu_seconds or 0) < 20
    assert 5 * MIB <= (usage.disk_bytes or 0) < 8 * MIB
    assert (usage.oom_kills, usage.is_disk_full) == (0, False)
    assert sandbox.usage().peak_memory_bytes == usage.peak_memory_bytes  # known after the end


def stopping_breaks_off_a_running_command(bench: Bench) -> None:
    sandbox = bench.start()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            sh(sandbox, "sleep 60", 60)
        except SandboxUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    started = time.monotonic()
    sandbox.stop()
    thread.join(10)
    assert len(errors) == 1
    assert time.monotonic() - started < 3


def a_trace_names_programs_and_files(bench: Bench) -> None:
    script = "cat data/one.txt nothing > new; "
    script += "(cd data && python3 -c 'open(\"run.sh\").read()'); rm data/one.txt"
    with bench.start() as sandbox:
        assert sandbox.trace() is None
        sh(sandbox, script, is_traced=True)
        trace = sandbox.trace()
    assert trace is not None
    assert trace.is_complete, trace.note
    assert {"/app/data/one.txt", "/app/data/run.sh"} <= set(trace.read)
    assert "/app/nothing" not in trace.read
    assert (trace.written, trace.deleted) == (("/app/new",), ("/app/data/one.txt",))
    assert trace.programs == ("cat", "python3", "rm")
    assert trace.commands[0] == ("cat", "data/one.txt", "nothing")


REAL = (
    a_timeout_ends_everything,
    kill_all_ends_what_was_left_behind,
    a_service_lives_on_and_may_write,
    output_is_capped_and_nobody_blocks,
    standard_input_is_fed,
    environment_workdir_and_user_are_kept,
    what_cannot_run_is_a_result,
    links_are_not_followed,
    a_very_deep_tree_is_removed,
    every_sandbox_is_fresh_and_alone,
    usage_is_counted,
    stopping_breaks_off_a_running_command,
    a_trace_names_programs_and_files,
)

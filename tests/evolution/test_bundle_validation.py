"""What keeps a bundle out, what is only said, and what is without reproach."""

from __future__ import annotations

import pytest

from evolution.bundle import Bundle
from evolution.execution import unsupported
from evolution.task_config import Severity
from evolution.validation import canaries, first_error, validate_bundle
from sandbox.contracts import SandboxFile
from tests.evolution.sample_bundles import TASK_TOML, sample_bundle


def _toml(old: str, new: str) -> Bundle:
    assert old in TASK_TOML
    return sample_bundle(task_toml=TASK_TOML.replace(old, new))


def test_a_sound_bundle_is_without_reproach() -> None:
    assert validate_bundle(sample_bundle()) == ()
    assert unsupported(sample_bundle()) == ()


@pytest.mark.parametrize(
    ("bundle", "path", "reason"),
    [
        (sample_bundle(without=("task.toml",)), "task.toml", "missing"),
        (sample_bundle(without=("instruction.md",)), "instruction.md", "missing"),
        (sample_bundle(without=("tests/test.sh",)), "tests/test.sh", "missing"),
        (sample_bundle(without=("environment/Dockerfile",)), "environment/Dockerfile", "missing"),
        (sample_bundle(SandboxFile("instruction.md", b" \n\t\n")), "instruction.md", "empty"),
        (sample_bundle(SandboxFile("instruction.md", b"# canary\n")), "instruction.md", "empty"),
        (
            sample_bundle(SandboxFile("instruction.md", "Tu es".encode("utf-16"))),
            "instruction.md",
            "not UTF-8",
        ),
        (
            sample_bundle(SandboxFile("instruction.md", "Größe".encode("latin-1"))),
            "instruction.md",
            "not UTF-8",
        ),
        (sample_bundle(SandboxFile("instruction.md", b"a\0b")), "instruction.md", "NUL"),
        (sample_bundle(SandboxFile("solution", b"")), "solution", "must be a folder"),
        (
            sample_bundle(SandboxFile("environment/out", link="../../x")),
            "environment/out",
            "leaves the bundle",
        ),
        (
            sample_bundle(SandboxFile("environment/out", link="/etc/passwd")),
            "environment/out",
            "leaves the bundle",
        ),
        (
            sample_bundle(
                SandboxFile("environment/deep/er/up", link="../.."),
                SandboxFile("environment/out", link="deep/er/up/../../x"),
            ),
            "environment/out",
            "out of the bundle",
        ),
        (
            sample_bundle(SandboxFile("environment/me", link="me")),
            "environment/me",
            "round in a circle",
        ),
        (
            sample_bundle(SandboxFile("environment/data/IN.txt")),
            "environment/data/in.txt",
            "only in case",
        ),
        (
            sample_bundle(SandboxFile("environment/é"), SandboxFile("environment/e\u0301")),
            "environment/é",
            "Unicode form",
        ),
        (sample_bundle(SandboxFile("environment/" + "n" * 256)), "environment/", "longer than 255"),
        (sample_bundle(SandboxFile("environment/x", b"", 0o4755)), "environment/x", "setuid"),
        (sample_bundle(SandboxFile("environment/a\nb")), "environment/a\nb", "control character"),
        (
            sample_bundle(SandboxFile("tests/.harborignore", b"test.sh")),
            "tests/test.sh",
            "excluded by .harborignore",
        ),
    ],
)
def test_what_keeps_a_bundle_out_is_named_by_path_and_reason(
    bundle: Bundle, path: str, reason: str
) -> None:
    problem = first_error(bundle)
    assert problem is not None
    assert problem.path.startswith(path)
    assert reason in problem.reason
    assert "\n" not in problem.reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("timeout_sec = 60.0", "timeout_sec = nan", "agent.timeout_sec: nan"),
        ("timeout_sec = 60.0", "timeout_sec = -1", "agent.timeout_sec: -1"),
        ("timeout_sec = 30.0", "timeout_sec = 1e30", "verifier.timeout_sec"),
        ("timeout_sec = 30.0", "timeout_sec = true", "verifier.timeout_sec"),
        ("memory_mb = 512", "memory_mb = -512", "environment.memory_mb"),
        ("memory_mb = 512", 'memory_mb = "512"', "environment.memory_mb"),
        ("cpus = 1", "cpus = inf", "environment.cpus"),
        ("[environment]", "[environment]\nenv = {A = 1}", "environment.env"),
        ("[environment]", "[environment]\nenv = {'A=B' = 'x'}", "environment.env"),
        ("[agent]", "[agent]\nuser = 1.5", "agent.user"),
        ('artifacts = ["/app/out"]', 'artifacts = "/app/out"', "artifacts"),
        ('artifacts = ["/app/out"]', "artifacts = [3]", "artifacts[0]"),
        ('schema_version = "1.4"', "solution = 3", "solution: must be a table"),
        ("[verifier]", "[verifier]\nenvironment = 3", "verifier.environment"),
        (
            'environment_mode = "separate"',
            'environment_mode = "shared"\nenvironment = {}',
            "contradicts",
        ),
        ("[task]", "[[steps]]\nx = 1\n[task]", "steps"),
        ('keywords = ["text"]', "keywords = 3", "task.keywords"),
        (
            'network_mode = "no-network"',
            'network_mode = "allowlist"\nallowed_hosts = ["a b"]',
            "environment.allowed_hosts",
        ),
    ],
)
def test_a_wrong_value_in_task_toml_is_named_by_its_key(old: str, new: str, reason: str) -> None:
    problem = first_error(_toml(old, new))
    assert problem is not None
    assert problem.path == "task.toml"
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("bundle", "path", "reason"),
    [
        (sample_bundle(without=("solution/solve.sh",)), "solution/solve.sh", "no reference"),
        (_toml("cpus = 1", "cpu = 1"), "task.toml", "environment.cpu: unknown key"),
        (_toml("memory_mb = 512", "memory = 2048"), "task.toml", "no size"),
        (
            sample_bundle(SandboxFile("tests/test.sh", b"#!/bin/sh\r\nexit\r\n", 0o755)),
            "tests/test.sh",
            "CRLF",
        ),
        (
            sample_bundle(SandboxFile("tests/test.sh", b"\xef\xbb\xbf#!/bin/sh\n", 0o755)),
            "tests/test.sh",
            "byte order mark",
        ),
        (
            sample_bundle(SandboxFile("instruction.md", "\ufeffDo".encode())),
            "instruction.md",
            "byte order mark",
        ),
        (
            sample_bundle(SandboxFile("instruction.md", "Do\u202e it".encode())),
            "instruction.md",
            "nobody sees",
        ),
        (
            sample_bundle(SandboxFile("instruction.md", b"\x1b[31mDo")),
            "instruction.md",
            "escape sequences",
        ),
        (
            sample_bundle(SandboxFile("environment/gone", link="nowhere")),
            "environment/gone",
            "not there",
        ),
        (sample_bundle(SandboxFile("environment/a: b")), "environment/a: b", "every file system"),
    ],
)
def test_what_is_only_said_does_not_keep_a_bundle_out(
    bundle: Bundle, path: str, reason: str
) -> None:
    problems = validate_bundle(bundle)
    assert all(problem.severity is Severity.WARNING for problem in problems), problems
    assert any(p.path == path and reason in p.reason for p in problems), problems


@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        (
            sample_bundle(
                SandboxFile("steps/one/instruction.md", b"x"),
                task_toml=TASK_TOML + '\n[[steps]]\nname = "one"\n',
            ),
            "several steps",
        ),
        (sample_bundle(SandboxFile("environment/docker-compose.yaml", b"x")), "compose"),
        (_toml("cpus = 1", "cpus = 1\ngpus = 1"), "gpus"),
        (_toml("cpus = 1", 'cpus = 1\nenv = {A = "${HOME}"}'), "${HOME}"),
        (_toml("[agent]", '[agent]\nnetwork_mode = "public"'), "two policies"),
        (
            _toml('artifacts = ["/app/out"]', 'artifacts = [{source = "/x", service = "db"}]'),
            "'db'",
        ),
    ],
)
def test_what_is_sound_but_cannot_be_run_here_is_named(bundle: Bundle, reason: str) -> None:
    assert first_error(bundle) is None
    assert any(reason in line for line in unsupported(bundle)), unsupported(bundle)


def test_every_problem_is_found_in_one_go_errors_first() -> None:
    bundle = sample_bundle(
        SandboxFile("instruction.md", b""),
        without=("tests/test.sh", "solution/solve.sh"),
        task_toml=TASK_TOML.replace("cpus = 1", "cpus = -1"),
    )
    problems = validate_bundle(bundle)
    assert [problem.path for problem in problems] == [
        "instruction.md",
        "task.toml",
        "tests/test.sh",
        "solution/solve.sh",
    ]


def test_canaries_are_named() -> None:
    bundle = sample_bundle(SandboxFile("tests/t.py", b"# BENCHMARK DATA ... Canary GUID"))
    assert canaries(bundle) == ("tests/t.py",)

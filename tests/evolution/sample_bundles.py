"""A small bundle to start from, for tests of reading, judging and running."""

from __future__ import annotations

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile

TASK_TOML = """\
# a comment that must survive
schema_version = "1.4"
artifacts = ["/app/out"]

[task]
name = "ratchet/sample"
description = "Count the lines"
keywords = ["text"]

[metadata]
license = "Apache-2.0"
unknown_here = 2026-01-02

[metadata.ratchet]
host_root = true

[agent]
timeout_sec = 60.0

[verifier]
timeout_sec = 30.0
environment_mode = "separate"

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
"""

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY data/ /app/data/\n"


def sample_files() -> dict[str, SandboxFile]:
    """The files of a sound bundle, by path, to be changed by a test."""
    texts = {
        "task.toml": (TASK_TOML, 0o644),
        "instruction.md": ("Count the lines of /app/data/in.txt into /app/out/n.\n", 0o644),
        "environment/Dockerfile": (DOCKERFILE, 0o644),
        "environment/data/in.txt": ("a\nb\n", 0o644),
        "solution/solve.sh": ("#!/bin/bash\nmkdir -p out; wc -l < data/in.txt > out/n\n", 0o755),
        "tests/test.sh": ("#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n", 0o755),
    }
    return {p: SandboxFile(p, text.encode(), mode) for p, (text, mode) in texts.items()}


def sample_bundle(
    *changes: SandboxFile, without: tuple[str, ...] = (), task_toml: str | None = None
) -> Bundle:
    """A sound bundle with some files put in, replaced, or left out."""
    files = sample_files()
    for path in without:
        del files[path]
    if task_toml is not None:
        files["task.toml"] = SandboxFile("task.toml", task_toml.encode())
    files.update({file.path: file for file in changes})
    return Bundle.of(files.values())

"""A piece of work, and how it is laid out as a bundle: Dockerfile, solution, tests, `task.toml`.

The same work can be judged by tests of several makes: functions with a report, functions in the
manner of pytest, `unittest`, one script, or the shell. Defects are put into the work or into the
bundle that was made of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bench.corpus import harness
from bench.corpus.harness import slug
from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile

OUT = "/app/out"
NOTHING: Mapping[str, bytes] = MappingProxyType({})
MAKES = ("runner", "functions", "unittest", "script")
"""The makes of tests that any work can be judged by; beside these there is "shell"."""


@dataclass(frozen=True)
class Work:
    """A piece of work. `outputs` are the paths that are judged, each with what must be in it.

    `data` lies below `/app/data`. `solve` is the body of `solve.sh`, `helpers` are files beside it.
    `checks` is Python source with `check_*` functions that replace the ones made of `outputs`;
    `more_checks` come on top.
    """

    instruction: str
    solve: str
    outputs: Mapping[str, bytes]
    data: Mapping[str, bytes] = NOTHING
    helpers: Mapping[str, bytes] = NOTHING
    checks: str = ""
    more_checks: str = ""
    artifacts: tuple[str, ...] = (OUT,)
    packages: tuple[str, ...] = ("python3",)
    build: tuple[str, ...] = ()
    """Lines of the Dockerfile after the data was copied."""
    make: str = "runner"
    is_embedded: bool = False
    """Whether what is expected stands in the tests' code instead of in files beside it."""
    is_shared: bool = False
    agent_user: str = ""
    network_mode: str = "no-network"
    memory_mb: int = 256
    agent_seconds: float = 60.0
    verifier_seconds: float = 30.0
    env: Mapping[str, str] = field(default_factory=dict)
    keywords: tuple[str, ...] = ("text",)
    title: str = "A piece of work"


def laid_out(work: Work, name: str) -> Bundle:
    """The bundle of a work."""
    texts: dict[str, str] = {
        "task.toml": task_toml(work, name),
        "instruction.md": work.instruction.strip() + "\n",
        "environment/Dockerfile": dockerfile(work),
        "solution/solve.sh": f"#!/bin/bash\nset -euo pipefail\n{work.solve.strip()}\n",
    }
    files = [SandboxFile(path, text.encode(), _mode(path)) for path, text in texts.items()]
    files += [SandboxFile(f"environment/data/{p}", data) for p, data in work.data.items()]
    files += [SandboxFile(f"solution/{p}", data) for p, data in work.helpers.items()]
    files += [SandboxFile(f"tests/{p}", data, _mode(p)) for p, data in tests_of(work).items()]
    return Bundle.of(files)


def _mode(path: str) -> int:
    return 0o755 if path.endswith(".sh") else 0o644


def task_toml(work: Work, name: str) -> str:
    """The configuration, as Harbor reads it."""
    mode = "shared" if work.is_shared else "separate"
    lines = [
        'schema_version = "1.4"',
        f"artifacts = {json.dumps(list(work.artifacts))}",
        "",
        "[task]",
        f'name = "corpus/{name}"',
        f"description = {json.dumps(work.title)}",
        f"keywords = {json.dumps(list(work.keywords))}",
        "",
        "[metadata]",
        'license = "Apache-2.0"',
        "",
        "[metadata.ratchet]",
        "host_root = true",
        "",
        "[agent]",
        f"timeout_sec = {work.agent_seconds}",
        *([f'user = "{work.agent_user}"'] if work.agent_user else []),
        "",
        "[verifier]",
        f"timeout_sec = {work.verifier_seconds}",
        f'environment_mode = "{mode}"',
        "",
        "[environment]",
        f'network_mode = "{work.network_mode}"',
        "cpus = 1",
        f"memory_mb = {work.memory_mb}",
        *(["", "[environment.env]"] if work.env else []),
        *(f"{key} = {json.dumps(value)}" for key, value in work.env.items()),
    ]
    return "\n".join(lines) + "\n"


def dockerfile(work: Work) -> str:
    """The image: the base, what is installed, the data, and what else was asked for."""
    lines = ["FROM debian:bookworm-slim"]
    if work.packages:
        lines.append(
            "RUN apt-get update && apt-get install -y --no-install-recommends "
            f"{' '.join(work.packages)} && rm -rf /var/lib/apt/lists/*"
        )
    lines.append("WORKDIR /app")
    if work.data:
        lines.append("COPY data/ /app/data/")
    lines += work.build
    if work.is_shared:
        lines.append("RUN mkdir -p /app/out && chmod 777 /app/out")
    return "\n".join(lines) + "\n"


def tests_of(work: Work) -> dict[str, bytes]:
    """The files of `tests/`."""
    if work.make == "shell":
        return {
            "test.sh": harness.shell_test(tuple(work.outputs)).encode(),
            **{f"expected/{slug(path)}": data for path, data in work.outputs.items()},
        }
    flags = "-I -S -B" if work.is_shared else "-I -B"
    source = (work.checks or checks_of(work)) + work.more_checks
    files = {name: text.encode() for name, text in harness.TESTS[work.make](source, flags).items()}
    if not work.checks and not work.is_embedded:
        files |= {f"expected/{slug(path)}": data for path, data in work.outputs.items()}
    return files


def checks_of(work: Work) -> str:
    """Check functions that compare every output with what must be in it."""
    parts = [harness.READING]
    if work.is_embedded:
        known = {path: data.decode() for path, data in work.outputs.items()}
        parts.append(f"EXPECTED = {json.dumps(known, indent=1, ensure_ascii=False)}\n")
    for path in work.outputs:
        wanted = f"meaning({path!r}, EXPECTED[{path!r}].encode())"
        if not work.is_embedded:
            wanted = f"content({'/tests/expected/' + slug(path)!r})"
        name = re.sub(r"\W+", "_", slug(path))
        parts.append(
            f"\n\ndef check_{name}_is_a_file():\n"
            f"    assert os.path.isfile({path!r}), {path + ' is missing'!r}\n"
            f"    assert not os.path.islink({path!r})\n"
            f"\n\ndef check_{name}():\n"
            f"    assert content({path!r}) == {wanted}\n"
        )
    return "".join(parts)

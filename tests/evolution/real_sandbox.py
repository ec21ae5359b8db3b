"""Real sandboxes for tests of the gates, and a small environment whose trials take little time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evolution.bundle import Bundle
from evolution.contracts import Mutation, StepConfig, Subject, Verdict
from evolution.gates.case import candidate
from evolution.gates.protocol import verify
from evolution.memory import MemoryLog
from evolution.ports import TrialRunner
from evolution.sequence import Pair
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import SandboxFile
from sandbox.trial import Runner

SEEDS = Path(__file__).parents[2] / "seeds"
RUN_CHECKS = SEEDS / "nginx-log-forensics" / "tests" / "run_checks.py"
CONFIG = StepConfig(seed=5, oracle_runs=1, nop_runs=1, mutant_count=12)

TASK = """\
schema_version = "1.4"
artifacts = ["/app/out"]

[task]
name = "ratchet/orders"
description = "Sum up the orders by customer"

[metadata]
license = "Apache-2.0"

[metadata.ratchet]
host_root = true
sequence = [
    { scenario = "orders in one file", skill = "parsing and grouping" },
    { scenario = "an empty output folder", skill = "writing a report" },
]

[agent]
timeout_sec = 20.0

[verifier]
timeout_sec = 20.0
environment_mode = "separate"

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 256
"""
INSTRUCTION = """\
# Orders

Read `/app/data/orders.csv` (columns: customer, day, amount in cents) and write
`/app/out/report.json`: an object with the total amount of every customer, and under `days` the
number of different days.
"""
DOCKERFILE = """\
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3
WORKDIR /app
COPY data/ /app/data/
"""
ORDERS = "customer,day,amount\n" + "".join(
    f"customer-{number % 7},2026-03-{number % 11 + 1:02d},{1000 + 37 * number}\n"
    for number in range(40)
)
SOLVE = """\
#!/bin/bash
set -euo pipefail
mkdir -p /app/out
python3 -I -B /solution/report.py
"""
REPORT = """\
import csv
import json
from collections import defaultdict

totals = defaultdict(int)
days = set()
with open("/app/data/orders.csv", newline="") as source:
    for row in csv.DictReader(source):
        totals[row["customer"]] += int(row["amount"])
        days.add(row["day"])
with open("/app/out/report.json", "w") as target:
    json.dump({**totals, "days": len(days)}, target, indent=2, sort_keys=True)
"""
TEST = """\
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec python3 -I -B /tests/run_checks.py
"""
CHECKS = """\
import json

TOTALS = %(totals)r
DAYS = 11


def report():
    with open("/app/out/report.json") as source:
        return json.load(source)


def check_totals():
    found = report()
    found.pop("days", None)
    assert found == TOTALS, found


def check_days():
    assert report()["days"] == DAYS
"""


def orders(*changes: SandboxFile, without: tuple[str, ...] = ()) -> Bundle:
    """The small environment, with some files put in, replaced or left out."""
    rows = [line.split(",") for line in ORDERS.splitlines()[1:]]
    totals: dict[str, int] = {}
    for customer, _, amount in rows:
        totals[customer] = totals.get(customer, 0) + int(amount)
    files = [
        SandboxFile("task.toml", TASK.encode()),
        SandboxFile("instruction.md", INSTRUCTION.encode()),
        SandboxFile("environment/Dockerfile", DOCKERFILE.encode()),
        SandboxFile("environment/data/orders.csv", ORDERS.encode()),
        SandboxFile("solution/solve.sh", SOLVE.encode(), 0o755),
        SandboxFile("solution/report.py", REPORT.encode()),
        SandboxFile("tests/test.sh", TEST.encode(), 0o755),
        SandboxFile("tests/run_checks.py", RUN_CHECKS.read_bytes()),
        SandboxFile("tests/checks.py", (CHECKS % {"totals": totals}).encode()),
    ]
    return Bundle.of(files).with_files(changes, without)


def subject_of(bundle: Bundle) -> Subject:
    """A bundle as a seed."""
    pairs = bundle.config["metadata"]["ratchet"]["sequence"]
    sequence = tuple(Pair(pair["scenario"], pair["skill"]) for pair in pairs)
    return Subject(bundle, sequence, (), bundle.instruction, generation=0)


def judge(mutation: Mutation, runner: TrialRunner, parent: Subject | None = None) -> Verdict:
    """Put a candidate before all gates."""
    return verify(candidate(parent or subject_of(orders()), mutation, CONFIG), runner, MemoryLog())


def refused_by(verdict: Verdict) -> dict[str, str]:
    """The blocking gates that failed, with their reasons."""
    return {result.gate: result.reason for result in verdict.failed}


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """Runs trials in bubblewrap sandboxes."""
    home = tmp_path_factory.mktemp("gates")
    backend = BubblewrapBackend(runtime_dir=home / "run", cache_dir=home / "cache")
    yield Runner(backend)
    backend.close()


def edited(bundle: Bundle, path: str, *pairs: tuple[str, str]) -> SandboxFile:
    """A file of the bundle after replacements, each of which must have a place."""
    text = bundle.text(path)
    for old, new in pairs:
        assert old in text, f"{path} does not hold {old!r}"
        text = text.replace(old, new)
    return replace(bundle.by_path[path], data=text.encode())

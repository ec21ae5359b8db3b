"""Sandboxes for roles come from the back-ends that run trials, and reach no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.choice import ChoosingRunner, SandboxChoice
from sandbox.contracts import ArtifactSpec, Limits, SandboxFile
from tests.evolution.real_sandbox import orders
from webapp.adapters.workbench import LEAST_MEMORY_BYTES, SandboxWorkbench, with_room


@pytest.mark.bubblewrap
def test_a_sandbox_of_the_environment_is_opened_and_kept(tmp_path: Path) -> None:
    backend = BubblewrapBackend(runtime_dir=tmp_path / "run", cache_dir=tmp_path / "cache")
    runner = ChoosingRunner(
        {SandboxChoice.BUBBLEWRAP: lambda: backend},
        has_engine=lambda: False,
        can_bubblewrap=lambda: True,
        choice=SandboxChoice.BUBBLEWRAP,
    )
    try:
        with SandboxWorkbench(runner, party="a test").open(orders()) as sandbox:
            sandbox.write_files([SandboxFile("x", b"1", 0o755)], "/bundle")
            done = sandbox.exec(
                ["bash", "-c", "head -1 data/orders.csv; ls /solution /tests; ls /sys/class/net"],
                timeout_seconds=20,
                user="root",
            )
            assert done.stdout.splitlines()[0] == b"customer,day,amount"
            assert b"report.py" not in done.stdout
            assert b"eth0" not in done.stdout
            found = sandbox.read_files([ArtifactSpec("/bundle")], cap_bytes=100)
            assert found == (SandboxFile("/bundle/x", b"1", 0o755),)
    finally:
        backend.close()


def test_the_files_come_on_top_of_the_limits() -> None:
    assert with_room(Limits(), 100).memory_bytes == LEAST_MEMORY_BYTES + 300
    assert with_room(Limits(memory_bytes=2**31), 0).memory_bytes == 2**31

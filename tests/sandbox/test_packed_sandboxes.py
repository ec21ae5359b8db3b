"""Sandboxes take places: as declared, for whom they are, while they live."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import (
    Image,
    ImageSpec,
    Limits,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    SolverSpec,
    TrialResult,
    TrialSpec,
    VerifierSpec,
)
from sandbox.errors import Refused
from sandbox.limits import DEFAULT_DISK_BYTES
from sandbox.machine import Machine
from sandbox.packing import Capacity
from sandbox.place_files import occupancy
from sandbox.places import Places
from sandbox.trial import Runner

pytestmark = pytest.mark.bubblewrap

_MIB = 1024 * 1024
_NO_NETWORK = NetworkPolicy()


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BubblewrapBackend]:
    home = tmp_path_factory.mktemp("one at once")
    numbers = Machine().capacity().cpu_numbers
    places = Places(home / "places", capacity=Capacity(1.0, 4096 * _MIB, numbers))
    made = BubblewrapBackend(home / "run", home / "cache", places=places)
    yield made
    made.close()


def _spec(*run: str) -> ImageSpec:
    text = "\n".join(["FROM scratch", "WORKDIR /app", *(f"RUN {command}" for command in run)])
    return ImageSpec((SandboxFile("Dockerfile", text.encode()),), is_host_root_compatible=True)


@pytest.fixture(scope="module")
def image(backend: BubblewrapBackend) -> Image:
    return backend.prepare(_spec())


def test_a_sandbox_holds_what_it_declared_until_it_stops(
    backend: BubblewrapBackend, image: Image
) -> None:
    limits = Limits(cpus=0.5, memory_bytes=64 * _MIB)
    with backend.start(image, limits, _NO_NETWORK, party="run 7"):
        (entry,) = occupancy(backend.places.folder).held
        assert (entry.party, entry.cpus) == ("run 7", 0.5)
        assert entry.memory_bytes == 64 * _MIB + DEFAULT_DISK_BYTES, "its disk is memory"
    assert occupancy(backend.places.folder).held == []


def test_a_pinned_sandbox_sees_its_own_cpus_only(backend: BubblewrapBackend, image: Image) -> None:
    with backend.start(image, Limits(cpus=1), _NO_NETWORK) as sandbox:
        (entry,) = occupancy(backend.places.folder).held
        seen = sandbox.exec(["nproc"], timeout_seconds=10).stdout
    assert int(seen) == (len(entry.cpu_set) or len(backend.places.capacity.cpu_numbers))


def test_a_sandbox_that_does_not_start_holds_nothing(
    backend: BubblewrapBackend, image: Image
) -> None:
    with pytest.raises(Refused, match="of memory were asked for"):
        backend.start(image, Limits(memory_bytes=1 << 40), _NO_NETWORK)
    with pytest.raises(Refused):
        backend.start(image, Limits(cpus=-1), _NO_NETWORK)
    assert occupancy(backend.places.folder).held == []


def test_a_build_takes_a_place(backend: BubblewrapBackend) -> None:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: backend.prepare(_spec("sleep 1")))
    thread.start()
    while thread.is_alive():
        seen.append(len(occupancy(backend.places.folder).held))
        time.sleep(0.01)
    assert max(seen) == 1
    assert occupancy(backend.places.folder).held == []


def test_a_persons_terminal_takes_none(backend: BubblewrapBackend, image: Image) -> None:
    with (
        backend.start(image, Limits(cpus=1), _NO_NETWORK),
        backend.start_uncounted(image, Limits(cpus=1), _NO_NETWORK) as beside,
    ):
        assert beside.exec(["nproc"], timeout_seconds=10).exit_status == 0
        assert len(occupancy(backend.places.folder).held) == 1


def test_waiting_for_a_place_is_a_phase_of_its_own(backend: BubblewrapBackend) -> None:
    verifier = VerifierSpec((SandboxFile("test.sh", b"echo 1 > /logs/verifier/reward.txt\n"),))
    spec = TrialSpec(_spec(), SolverSpec("nop"), verifier, Limits(cpus=1))
    results: list[TrialResult] = []
    runner = Runner(backend, party="run 8")
    held = backend.places.acquire(cpus=1)
    thread = threading.Thread(target=lambda: results.append(runner.run(spec)))
    thread.start()
    while not (waiting := occupancy(backend.places.folder).waiting):
        time.sleep(0.005)
    time.sleep(0.3)
    held.release()
    thread.join(30)
    (result,) = results
    phases = dict(result.phases)
    assert waiting[0].party == "run 8"
    assert result.outcome is Outcome.PASS
    assert phases["wait"] >= 0.3
    assert 0 < phases["start"] < result.seconds - phases["wait"]


def test_only_what_was_declared_is_refused_on_a_small_machine(
    tmp_path: Path, backend: BubblewrapBackend, image: Image
) -> None:
    small = Places(tmp_path, capacity=Capacity(1.0, 100 * _MIB, (0,)))
    other = BubblewrapBackend(backend.runtime_dir, backend.cache_dir, places=small)
    try:
        with other.start(image, Limits(), _NO_NETWORK) as sandbox:
            assert sandbox.exec(["true"], timeout_seconds=10).exit_status == 0
        with pytest.raises(Refused, match=r"1\.0 GiB of memory were asked for"):
            other.start(image, Limits(disk_bytes=1024 * _MIB), _NO_NETWORK)
    finally:
        other.close()

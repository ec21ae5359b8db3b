"""Faults: how each is done to a trial, and as what it must be reported."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum

import docker

from bench import processes
from bench.proxy import EngineProxy
from sandbox.contracts import Outcome, SandboxFile, SolverEnd, TrialResult, TrialSpec
from sandbox.reaper import SERVER_MARKER

MIB = 1024 * 1024
TOKEN = "RATCHET_FAULT"  # noqa: S105
LINGER_SECONDS = 50
_DISK_BYTES, _MEMORY_BYTES = 96 * MIB, 160 * MIB
_FILL = "head -c 300M /dev/zero >/var/fill"
_EAT = "head -c 2G /dev/zero | tail >/dev/null"
_MACHINERY = re.compile(r"sandbox|container|engine|connection|server|docker", re.IGNORECASE)


class Fault(StrEnum):
    """What goes wrong."""

    CONNECTION = "connection"
    """The engine's connection breaks in mid-request; where there is none, the server is killed."""
    SANDBOX = "sandbox"
    """The container, or the sandbox's warden or first process, is killed from outside."""
    DISK = "disk"
    """The solver fills the disk."""
    MEMORY = "memory"
    """The solver eats all memory."""


SHARED = frozenset((Fault.CONNECTION,))
"""Faults that would strike the trials beside them too: they are done while no other trial runs."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One fault: what is done to the specification, and whether the work is still done."""

    fault: Fault
    spec: TrialSpec
    token: str
    is_work_done: bool
    delay_seconds: float
    piece: int
    is_gone_after: bool


def plan(fault: Fault, spec: TrialSpec, chance: random.Random, number: int) -> Plan:
    """Choose the details of a fault by chance, and put into the trial what it needs."""
    token = f"{os.getpid()}-{number}-{chance.getrandbits(32):08x}"
    is_work_done = chance.random() < 0.5
    if fault in (Fault.DISK, Fault.MEMORY):
        hog = _FILL if fault is Fault.DISK else _EAT
        command = f"{spec.solver.command}; {hog}" if is_work_done else hog
        limits = spec.limits
        if fault is Fault.DISK:
            limits = replace(limits, disk_bytes=_DISK_BYTES)
        else:
            limits = replace(limits, memory_bytes=_MEMORY_BYTES)
        spec = replace(spec, solver=replace(spec.solver, command=command), limits=limits)
    elif fault is Fault.SANDBOX:
        spec = _lingering(spec, token, in_verifier=not is_work_done)
    return Plan(
        fault,
        spec,
        token,
        is_work_done,
        chance.uniform(0.0, 0.3),
        chance.randint(1, 60),
        chance.random() < 0.3,
    )


def _lingering(spec: TrialSpec, token: str, *, in_verifier: bool) -> TrialSpec:
    """The trial stays in one phase, after its work there, until it is killed."""
    mark = ((TOKEN, token),)
    if not in_verifier:
        command = f"{spec.solver.command}; sleep {LINGER_SECONDS}"
        solver = replace(spec.solver, command=command, env=(*spec.solver.env, *mark))
        return replace(spec, solver=solver)
    original = "original-test.sh"
    files = tuple(
        replace(file, path=original, mode=0o755) if file.path == "test.sh" else file
        for file in spec.verifier.files
    )
    text = f"#!/bin/bash\n/tests/{original}\nsleep {LINGER_SECONDS}\n"
    driver = SandboxFile("test.sh", text.encode(), 0o755)
    verifier = replace(spec.verifier, files=(*files, driver), env=(*spec.verifier.env, *mark))
    return replace(spec, verifier=verifier)


class Injector:
    """Does to a running trial what its plan says. `proxy` stands before the engine, if any."""

    def __init__(self, proxy: EngineProxy | None) -> None:
        self.proxy = proxy

    @contextmanager
    def during(self, chosen: Plan) -> Iterator[list[str]]:
        """Around the trial; the list tells afterwards what was done, empty when nothing struck."""
        done: list[str] = []
        if chosen.fault is Fault.CONNECTION and self.proxy is not None:
            before = self.proxy.broken
            self.proxy.break_at(chosen.piece, is_gone_after=chosen.is_gone_after)
            try:
                yield done
            finally:
                self.proxy.disarm()
            if self.proxy.broken > before:
                done.append("engine gone" if chosen.is_gone_after else "connection broken")
            return
        if chosen.fault in (Fault.DISK, Fault.MEMORY):
            done.append("work, then hog" if chosen.is_work_done else "hog instead of work")
            yield done
            return
        is_over = threading.Event()
        killer = threading.Thread(target=self._kill, args=(chosen, is_over, done))
        killer.start()
        try:
            yield done
        finally:
            is_over.set()
            killer.join()

    def _kill(self, chosen: Plan, is_over: threading.Event, done: list[str]) -> None:
        if chosen.fault is Fault.CONNECTION:
            is_over.wait(chosen.delay_seconds)
            for pid in servers():
                _kill(pid)
                done.append("server killed")
            return
        text = f"{TOKEN}={chosen.token}"
        victim = None
        while victim is None and not is_over.wait(0.01):
            victim = next(
                (pid for pid in processes.pids() if processes.has_in_environment(pid, text)), None
            )
        if victim is None or is_over.wait(chosen.delay_seconds):
            return
        if (container := processes.container_of(victim)) is not None:
            _kill_container(container)
            done.append("container killed")
            return
        warden = processes.above(victim, lambda pid: processes.name_of(pid) == "ratchet-warden")
        first = processes.first_beside(victim)
        target = warden if chosen.piece % 2 else first
        if target is not None:
            _kill(target)
            done.append("warden killed" if target == warden else "first process killed")


def servers() -> list[int]:
    """The fork servers of this process."""
    return [
        pid
        for pid in processes.pids()
        if processes.parent_of(pid) == os.getpid() and SERVER_MARKER in processes.command_line(pid)
    ]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_container(container: str) -> None:
    client = docker.APIClient(timeout=30)
    try:
        client.kill(container)
    except docker.errors.APIError:
        pass  # it had just ended
    finally:
        client.close()


def shown(result: TrialResult) -> str:
    """As what a trial was reported: its outcome, with how the solver ended unless it just did."""
    end = "" if result.solver_end is SolverEnd.DONE else f" ({result.solver_end.value})"
    return f"{result.outcome.value}{end}"


def misreport(chosen: Plan | None, done: list[str], result: TrialResult) -> str:
    """What is wrong with how a trial was reported; empty when it is what happened."""
    if chosen is None or not done:
        is_right = shown(result) == Outcome.PASS.value
        return "" if is_right else f"an undisturbed trial: {shown(result)}: {result.error}"
    if chosen.fault in (Fault.DISK, Fault.MEMORY):
        return _hog_misreport(chosen, result)
    if result.outcome is Outcome.PASS and chosen.fault is Fault.CONNECTION:
        return ""  # it was tried again, or nothing was needed any more
    if result.outcome is not Outcome.INFRA_ERROR:
        return f"{done[0]}, but {shown(result)}: {result.error}"
    if not _MACHINERY.search(result.error):
        return f"{done[0]}: a line that does not say so: {result.error!r}"
    return ""


def _hog_misreport(chosen: Plan, result: TrialResult) -> str:
    end = SolverEnd.QUOTA if chosen.fault is Fault.DISK else SolverEnd.OUT_OF_MEMORY
    if result.solver_end is not end:
        return f"the solver's end is {result.solver_end.value}, not {end.value}: {result.error}"
    wanted = Outcome.PASS if chosen.is_work_done else Outcome.FAIL
    if result.outcome is not wanted:
        return f"{shown(result)} instead of {wanted.value}: {result.error}"
    if not result.checks:
        return "the verifier left no checks: it did not judge"
    return ""

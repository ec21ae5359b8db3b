"""Lineages bred in this process: real sandboxes and real HTTP, no database, no workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from evolution.agents.means import Means
from evolution.authors.llm import LlmAuthor
from evolution.contracts import StepConfig, StepResult, Subject
from evolution.directions import Direction
from evolution.engine import evolve_step
from evolution.llm.calls import SANDBOX, CallLog, CallRecord
from evolution.llm.endpoints import parse_models
from evolution.llm.gateway import Gateway
from evolution.llm.lines import Lines
from evolution.llm.replay import CallMemory
from evolution.memory import MemoryJournal
from sandbox.trial import Runner
from tests.evolution.agents.conftest import RunnersBench

KEY = "sk-canary-91c44e7ab0d2"
"""The key that is sent to the server, and must be found nowhere else."""
QUICK = StepConfig(seed=0, oracle_runs=1, nop_runs=1, mutant_count=12)


@contextmanager
def gateway_to(models: str, log: CallLog, *, is_replay: bool = False) -> Iterator[Gateway]:
    """A gateway to these models (the text of RATCHET_MODELS), with connections of its own."""
    lines = Lines({"HARNESS_KEY": KEY})
    try:
        with Gateway(parse_models(models), log, lines, is_replay=is_replay) as gateway:
            yield gateway
    finally:
        lines.close()


@dataclass
class House:
    """Everything that steps need, on one endpoint."""

    runner: Runner
    models: str
    """The text of RATCHET_MODELS."""
    log: CallMemory = field(default_factory=CallMemory)
    is_replay: bool = False

    @contextmanager
    def author(self) -> Iterator[LlmAuthor]:
        """An author with a gateway of its own."""
        with gateway_to(self.models, self.log, is_replay=self.is_replay) as gateway:
            bench = RunnersBench(self.runner)
            yield LlmAuthor(Means(gateway, bench, self.runner, log=self.log))

    def step(
        self, subject: Subject, config: StepConfig, journal: MemoryJournal | None = None
    ) -> StepResult:
        """One step."""
        with self.author() as author:
            return evolve_step(subject, author, self.runner, journal or MemoryJournal(), config)

    def breed(
        self, seed: Subject, generations: int, run_seed: int, config: StepConfig = QUICK
    ) -> list[str]:
        """The digests of a lineage's children, one each generation, by the seeds that runs give."""
        subject, digests = seed, []
        for generation in range(1, generations + 1):
            chosen = replace(config, seed=step_seed(run_seed, subject, generation))
            step = self.step(subject, chosen)
            if step.accepted is None:
                break
            subject = child_subject(subject, step)
            digests.append(subject.bundle.digest)
        return digests

    @property
    def calls(self) -> list[CallRecord]:
        """The attempts at calls of models, in order."""
        return [call for call in self.log.calls if call.model != SANDBOX]


def child_subject(parent: Subject, step: StepResult) -> Subject:
    """The accepted child as the next parent."""
    assert step.accepted is not None
    made = step.accepted.mutation
    return Subject(
        bundle=made.child,
        sequence=made.sequence,
        demands=(*parent.demands, made.demand),
        root_instruction=parent.root_instruction,
        generation=parent.generation + 1,
    )


def step_seed(run_seed: int, parent: Subject, generation: int, ordinal: int = 0) -> int:
    """The seed that a run gives to a step."""
    text = f"{run_seed}:{parent.bundle.digest}:{generation}:{ordinal}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def one_way(direction: Direction, seed: int = 1) -> StepConfig:
    """A quick step in one direction."""
    return replace(QUICK, seed=seed, directions=(direction,))


def endpoint(url: str, model: str, options: str = "") -> str:
    """The text of RATCHET_MODELS for one model in all roles."""
    more = f"key_env=HARNESS_KEY backoff=0.01 {options}".strip()
    return f"default={url} {model} {more}"

"""What a step consumed and decided, as values: it can be replayed without a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from evolution.contracts import (
    Attempt,
    GateResult,
    Mutation,
    Plan,
    PlanReview,
    StepConfig,
    StepResult,
    Subject,
    Verdict,
)
from evolution.directions import Direction
from evolution.engine import evolve_step
from evolution.gates.case import Case
from evolution.gates.desk import Steps
from evolution.memory import MemoryJournal
from evolution.ports import Author, Journal, TrialLog, TrialRunner
from sandbox.contracts import Image, ImageSpec, TrialResult, TrialSpec
from sandbox.errors import ImageBuildFailed, Refused, SandboxError, SandboxUnavailable

FORMAT = 1


class NotRecorded(Exception):
    """A replay asked for something that the recording does not hold. Names what."""


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """One result that the step was given, by its trial's key, in the order in which it came."""

    key: str
    solver: str
    result: TrialResult


@dataclass(frozen=True, slots=True)
class RecordedBuild:
    """How one image build ended. `error` is its class and message, empty when it was built."""

    digest: str
    image: Image | None
    error: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the author said, in order: exactly one of the two fields of an answer is set.

    `subject` is the parent as the author saw it, None where that is the one that went in;
    `examinations` are the answers of its own gates, in order; `most_plans` as `Author` has it.
    """

    proposals: tuple[tuple[Plan | None, str], ...] = ()
    reviews: tuple[PlanReview, ...] = ()
    mutations: tuple[tuple[Mutation | None, str], ...] = ()
    subject: Subject | None = None
    examinations: tuple[tuple[GateResult, ...], ...] = ()
    most_plans: int = 64


@dataclass(frozen=True, slots=True)
class Recording:
    """One step: what went in, what was answered, what came out."""

    author: str
    subject: Subject
    config: StepConfig
    answers: Answers
    builds: tuple[RecordedBuild, ...]
    trials: tuple[RecordedTrial, ...]
    end: str
    child_digest: str
    format: int = FORMAT


def encode(recording: Recording) -> bytes:
    """A recording as JSON."""
    return msgspec.json.encode(recording)


def decode(data: bytes) -> Recording:
    """What `encode` made. Raises msgspec.ValidationError on anything else."""
    return msgspec.json.decode(data, type=Recording)


def record_step(
    subject: Subject,
    author: Author,
    runner: TrialRunner,
    journal: Journal,
    config: StepConfig,
    *,
    workers: int = 2,
) -> tuple[StepResult, Recording]:
    """Carry out a step as `evolve_step` does, and keep all of it."""
    listening = RecordingRunner(runner)
    noted = _NotedAuthor(author)
    kept = _NotedJournal(journal, listening)
    result = evolve_step(subject, noted, listening, kept, config, workers=workers)
    accepted = result.accepted
    return result, Recording(
        author=author.name,
        subject=subject,
        config=config,
        answers=noted.answers,
        builds=tuple(listening.builds),
        trials=tuple(listening.trials),
        end=result.end.value,
        child_digest=accepted.mutation.child.digest if accepted else "",
    )


def replay(recording: Recording, author: Author | None = None) -> StepResult:
    """Carry out a recorded step again, without a sandbox.

    Without `author` the recorded answers are given again; a deterministic author may be passed to
    see that it still decides alike. Raises NotRecorded where the step takes another way.
    """
    return evolve_step(
        recording.subject,
        author or RecordedAuthor(recording.author, recording.answers),
        RecordedRunner(recording.trials, recording.builds),
        MemoryJournal(),
        recording.config,
        workers=1,
    )


class RecordingRunner:
    """Passes everything on to a runner, and keeps what came back. Safe to use from threads."""

    def __init__(self, runner: TrialRunner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self.trials: list[RecordedTrial] = []
        self.builds: list[RecordedBuild] = []

    def run(self, spec: TrialSpec) -> TrialResult:
        """See `TrialRunner.run`."""
        result = self._runner.run(spec)
        self.note(spec.key, spec.solver.name, result)
        return result

    def note(self, key: str, solver: str, result: TrialResult) -> None:
        """Keep a result that came from elsewhere (a log that remembered it)."""
        with self._lock:
            self.trials.append(RecordedTrial(key, solver, result))

    def prepare(self, spec: ImageSpec) -> Image:
        """See `TrialRunner.prepare`."""
        try:
            image = self._runner.prepare(spec)
        except SandboxError as error:
            kept = RecordedBuild(spec.digest, None, type(error).__name__, str(error))
            self.builds.append(kept)
            raise
        self.builds.append(RecordedBuild(spec.digest, image))
        return image


class RecordedRunner:
    """Answers from a recording. A trial's results are given in the order in which they came."""

    def __init__(
        self, trials: Iterable[RecordedTrial], builds: Iterable[RecordedBuild] = ()
    ) -> None:
        self._lock = threading.Lock()
        self._trials: dict[str, list[TrialResult]] = {}
        for trial in trials:
            self._trials.setdefault(trial.key, []).append(trial.result)
        self._builds: dict[str, list[RecordedBuild]] = {}
        for build in builds:
            self._builds.setdefault(build.digest, []).append(build)

    def run(self, spec: TrialSpec) -> TrialResult:
        """The next recorded result. Raises NotRecorded when there is none left."""
        with self._lock:
            left = self._trials.get(spec.key)
            if not left:
                raise NotRecorded(
                    f"no trial {spec.key[:12]} of solver {spec.solver.name!r} is left"
                )
            return left.pop(0)

    def prepare(self, spec: ImageSpec) -> Image:
        """The recorded image, or the recorded error again."""
        left = self._builds.get(spec.digest)
        if not left:
            raise NotRecorded(f"no build of image {spec.digest[:12]} is left")
        build = left.pop(0)
        if build.image is not None:
            return build.image
        kinds = {kind.__name__: kind for kind in (ImageBuildFailed, Refused, SandboxUnavailable)}
        raise kinds[build.error](build.message)


class RecordedAuthor:
    """Gives recorded answers again, in order."""

    def __init__(self, name: str, answers: Answers) -> None:
        self.name = name
        self._proposals = list(answers.proposals)
        self._reviews = list(answers.reviews)
        self._mutations = list(answers.mutations)
        self._examinations = list(answers.examinations)
        self._subject = answers.subject
        self.most_plans = answers.most_plans

    def understand(self, subject: Subject) -> Subject:
        """The recorded subject."""
        return self._subject or subject

    def propose(
        self, subject: Subject, direction: Direction, config: StepConfig, findings: tuple[str, ...]
    ) -> Plan | str:
        """The next recorded proposal."""
        plan, reason = _next(self._proposals, f"a proposal in direction {direction.value}")
        return reason if plan is None else plan

    def review_plan(self, subject: Subject, plan: Plan) -> PlanReview:
        """The next recorded review."""
        return _next(self._reviews, f"a review of the plan {plan.summary!r}")

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        """The next recorded mutation."""
        mutation, reason = _next(self._mutations, f"a mutation by {plan.operator}")
        return reason if mutation is None else mutation

    def examine(self, case: Case) -> Mapping[str, Steps]:
        """The next recorded answers of the author's own gates."""
        answers = self._examinations.pop(0) if self._examinations else ()
        return {answer.gate: _answered(answer) for answer in answers}


def _answered(answer: GateResult) -> Steps:
    """A gate that needs nothing to answer."""
    yield ()
    return answer


def _next[Answer](left: list[Answer], what: str) -> Answer:
    if not left:
        raise NotRecorded(f"{what} is not in the recording")
    return left.pop(0)


class _NotedAuthor:
    def __init__(self, author: Author) -> None:
        self._author = author
        self.name = author.name
        self.most_plans = author.most_plans
        self.proposals: list[tuple[Plan | None, str]] = []
        self.reviews: list[PlanReview] = []
        self.mutations: list[tuple[Mutation | None, str]] = []
        self.examinations: list[list[GateResult]] = []
        self.subject: Subject | None = None

    @property
    def answers(self) -> Answers:
        return Answers(
            tuple(self.proposals),
            tuple(self.reviews),
            tuple(self.mutations),
            self.subject,
            tuple(map(tuple, self.examinations)),
            self.most_plans,
        )

    def understand(self, subject: Subject) -> Subject:
        seen = self._author.understand(subject)
        self.subject = None if seen is subject else seen
        return seen

    def propose(
        self, subject: Subject, direction: Direction, config: StepConfig, findings: tuple[str, ...]
    ) -> Plan | str:
        plan = self._author.propose(subject, direction, config, findings)
        self.proposals.append((None, plan) if isinstance(plan, str) else (plan, ""))
        return plan

    def review_plan(self, subject: Subject, plan: Plan) -> PlanReview:
        review = self._author.review_plan(subject, plan)
        self.reviews.append(review)
        return review

    def modify(self, subject: Subject, plan: Plan, evidence: Verdict | None) -> Mutation | str:
        made = self._author.modify(subject, plan, evidence)
        self.mutations.append((None, made) if isinstance(made, str) else (made, ""))
        return made

    def examine(self, case: Case) -> Mapping[str, Steps]:
        answers: list[GateResult] = []
        self.examinations.append(answers)

        def noted(steps: Steps) -> Steps:
            answer = yield from steps
            answers.append(answer)
            return answer

        return {name: noted(steps) for name, steps in self._author.examine(case).items()}


class _NotedLog:
    """A log whose memories are kept in the recording, too: a replay starts with an empty one."""

    def __init__(self, log: TrialLog, runner: RecordingRunner) -> None:
        self._log = log
        self._runner = runner

    def recall(self, key: str, solver: str, repetition: int) -> TrialResult | None:
        result = self._log.recall(key, solver, repetition)
        if result is not None:
            self._runner.note(key, solver, result)
        return result

    def record(
        self, key: str, solver: str, repetition: int, gate: str, result: TrialResult
    ) -> None:
        self._log.record(key, solver, repetition, gate, result)

    def gate(self, result: GateResult) -> None:
        self._log.gate(result)


class _NotedJournal:
    def __init__(self, journal: Journal, runner: RecordingRunner) -> None:
        self._journal = journal
        self._runner = runner

    def event(self, kind: str, text: str, **facts: str | int | float) -> None:
        self._journal.event(kind, text, **facts)

    def open_candidate(self, plan: Plan, mutation: Mutation, repair: int) -> TrialLog:
        return _NotedLog(self._journal.open_candidate(plan, mutation, repair), self._runner)

    def close_candidate(self, attempt: Attempt) -> None:
        self._journal.close_candidate(attempt)

    def parent_log(self) -> TrialLog:
        return _NotedLog(self._journal.parent_log(), self._runner)

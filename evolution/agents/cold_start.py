"""Cold start: what a foreign bundle lacks, found or written: its sequence, its solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evolution.agents import briefing
from evolution.agents.answers import Extraction, Written
from evolution.agents.asking import GaveUp, Question, ask, make
from evolution.agents.drafts import DraftTrials
from evolution.agents.hands import tools_of
from evolution.agents.means import Means
from evolution.agents.trimming import quoted
from evolution.agents.workbench import BUNDLE, Bench, DraftError, laid_out, size_complaint
from evolution.bundle import Bundle, BundleError
from evolution.contracts import StepConfig, Subject, Verdict
from evolution.gates.policy import Policy
from evolution.gates.protocol import verify_bundle
from evolution.llm.calls import Role
from evolution.plain_text import plain
from evolution.ports import TrialLog
from evolution.prompts import prompt
from evolution.sequence import Pair, Sequence, assumed_sequence
from sandbox.contracts import SandboxFile

EXTRACT_PROMPT = prompt("sequence", "house")
WRITE_PROMPT = prompt("reference_solution", "house")


def understand(means: Means, subject: Subject) -> Subject:
    """The subject with an extracted sequence where it has none but the assumed one."""
    if subject.demands or subject.sequence != assumed_sequence(subject.bundle.config):
        return subject
    found = extract_sequence(means, subject)
    return subject if isinstance(found, GaveUp) else replace(subject, sequence=found)


def extract_sequence(means: Means, subject: Subject) -> Sequence | GaveUp:
    """The scenario-skill sequence of an environment, as a model reads it."""
    bundle, bounds = subject.bundle, means.bounds
    text = "\n\n".join(
        (
            quoted("instruction.md", bundle.displayed_instruction, bounds.file),
            briefing.listing(bundle, bounds),
            briefing.contents(bundle, "solution/", bounds.brief // 3, bounds),
        )
    )
    answer = ask(
        means.models,
        Question(
            role=Role.COLD_START,
            place=f"sequence/{bundle.digest[:12]}",
            prompt=EXTRACT_PROMPT,
            text=text,
            answer=Extraction,
            turns=means.turns.extract,
            check=_twice,
        ),
        bounds,
    )
    if isinstance(answer, GaveUp):
        return answer
    return tuple(Pair(plain(pair.scenario), plain(pair.skill)) for pair in answer.pairs)


def _twice(answer: Extraction) -> str | None:
    said = [(pair.scenario.casefold(), pair.skill.casefold()) for pair in answer.pairs]
    return "two pairs say the same" if len(set(said)) < len(said) else None


@dataclass(frozen=True, slots=True)
class Completed:
    """A bundle that was given a reference solution, with what the gates say of it."""

    bundle: Bundle
    verdict: Verdict


def write_solution(
    means: Means, subject: Subject, log: TrialLog, config: StepConfig, *, number: int = 1
) -> Completed | str:
    """Write the reference solution of a bundle that has none; one line where it came to nothing.

    It is accepted through the gates alone (by the policy for imported environments), and only
    when nothing but files below `solution/` was added. `number` tells one try from another, whose
    answers are not asked for again.
    """
    bundle, place = subject.bundle, f"solution/{subject.bundle.digest[:12]}/{number}"
    if said := size_complaint(bundle):
        return said
    bench = Bench(
        start=lambda: laid_out(means.workbench.open(bundle), bundle),
        role=Role.COLD_START,
        place=f"{place}/tools",
        bounds=means.bounds,
        log=means.log,
    )
    try:
        files = _written(means, bundle, bench, place)
    finally:
        bench.close()
    if isinstance(files, str):
        return files
    whole = bundle.with_files(files)
    verdict = verify_bundle(
        replace(subject, bundle=whole), None, means.runner, log, config, policy=Policy.IMPORTED
    )
    if not verdict.is_valid:
        weak = verdict.failed[0] if verdict.failed else None
        why = f"{weak.gate}: {weak.reason}" if weak else verdict.status.value
        return f"the solution that was written is not sound: {why}"
    return Completed(whole, verdict)


def _written(
    means: Means, bundle: Bundle, bench: Bench, place: str
) -> tuple[SandboxFile, ...] | str:
    def files() -> tuple[SandboxFile, ...]:
        draft = bench.draft()
        foreign = [f.path for f in draft.changed if not f.path.startswith("solution/")]
        if foreign or draft.removed:
            changed = (*foreign, *draft.removed)[0]
            raise DraftError(f"{changed} was changed: only files below solution/ may be added")
        return draft.changed

    def written(_: Written) -> tuple[SandboxFile, ...] | str:
        try:
            found = files()
        except DraftError as error:
            return str(error)
        if not any(file.path == "solution/solve.sh" for file in found):
            return "there is no /bundle/solution/solve.sh"
        return found

    def draft() -> tuple[Bundle, tuple[SandboxFile, ...]]:
        try:
            return bundle.with_files(files()), ()
        except BundleError as error:
            raise DraftError(f"{error.path}: {error.reason}") from None

    return make(
        means.models,
        Question(
            role=Role.COLD_START,
            place=place,
            prompt=WRITE_PROMPT,
            text="\n\n".join(
                (
                    quoted("instruction.md", bundle.displayed_instruction, means.bounds.file),
                    briefing.listing(bundle, means.bounds),
                )
            ),
            answer=Written,
            tools=tools_of(
                bench,
                roots=(f"{BUNDLE}/solution",),
                trial=DraftTrials(bench, means.runner, draft, means.drafts),
            ),
            turns=means.turns.modify,
        ),
        means.bounds,
        written,
        gave_up="no solution was written",
        refused="no solution can be written",
    )

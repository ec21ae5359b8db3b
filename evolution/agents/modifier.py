"""The Modifier: builds the child in a sandbox of the parent, and repairs it from evidence."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from evolution.agents import briefing
from evolution.agents.answers import Built
from evolution.agents.asking import Question, make
from evolution.agents.assembling import (
    base_of,
    child_of,
    complaint,
    demand_id,
    mutation_of,
    naive_edits,
    naive_of,
)
from evolution.agents.drafts import DraftTrials
from evolution.agents.hands import tools_of
from evolution.agents.means import Means
from evolution.agents.workbench import Bench, Draft, DraftError, laid_out, size_complaint
from evolution.bundle import Bundle
from evolution.composition import artifacts_of, checks_path, is_composed
from evolution.contracts import Mutation, Plan, Subject, Verdict
from evolution.llm.calls import Role
from evolution.operators.wrapping import parent_checks
from evolution.prompts import prompt
from sandbox.contracts import SandboxFile, tree_digest

PROMPT = prompt("modifier", "house")


def modify(
    means: Means,
    subject: Subject,
    plan: Plan,
    evidence: Verdict | None,
    earlier: Mutation | None,
) -> Mutation | str:
    """Build the child, or repair `earlier` from the evidence; one line where it came to nothing."""
    place = f"{plan.seed}/{plan.direction.value}/modify/{plan.revision}"
    if evidence is not None:
        place += "/repair"
    base = base_of(subject)
    if said := size_complaint(base):
        return said
    start = earlier.child if earlier is not None and evidence is not None else base
    naive = _changed_naive(earlier) if start is not base else ()
    bench = Bench(
        start=lambda: laid_out(means.workbench.open(subject.bundle), start, naive),
        role=Role.MODIFIER,
        place=f"{place}/{_begun_with(plan, start, naive)}/tools",
        bounds=means.bounds,
        log=means.log,
    )
    try:
        return _Work(means, subject, plan, bench, base, start, earlier).done(place, evidence)
    finally:
        bench.close()


def _begun_with(plan: Plan, start: Bundle, naive: tuple[SandboxFile, ...]) -> str:
    """What tells the work on one draft from that on another, which may be at the same place."""
    parts = (repr(plan), start.digest, tree_digest(naive))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _changed_naive(earlier: Mutation | None) -> tuple[SandboxFile, ...]:
    """The files of the earlier naive solution that differ from the reference solution."""
    if earlier is None:
        return ()
    reference = set(earlier.child.folder("solution"))
    return tuple(file for file in earlier.naive if file not in reference)


@dataclass
class _Work:
    """One build: `base` is the parent as laid out, `start` what the model begins with."""

    means: Means
    subject: Subject
    plan: Plan
    bench: Bench
    base: Bundle
    start: Bundle
    earlier: Mutation | None = None

    def done(self, place: str, evidence: Verdict | None) -> Mutation | str:
        """Ask the model; its child with all parts, or one line."""
        trials = DraftTrials(self.bench, self.means.runner, self._as_it_stands, self.means.drafts)
        return make(
            self.means.models,
            Question(
                role=Role.MODIFIER,
                place=place,
                prompt=PROMPT,
                text=self._text(evidence),
                answer=Built,
                tools=tools_of(self.bench, trial=trials),
                turns=self.means.turns.modify,
            ),
            self.means.bounds,
            self._made_of,
            gave_up="the modifier gave up",
            refused="the modifier cannot build it",
        )

    def _draft(self) -> Draft:
        """What the bundle differs in from the parent, whatever it was laid out as."""
        left = self.bench.draft()
        if self.start is self.base:
            return left
        child = left.applied_to(self.start)
        before = self.base.by_path
        changed = tuple(file for file in child.files if before.get(file.path) != file)
        removed = tuple(path for path in before if path not in child.by_path)
        return Draft(changed, removed, left.naive)

    def _as_it_stands(self) -> tuple[Bundle, tuple[SandboxFile, ...]]:
        """The draft as a child, and its naive solution as far as the files tell."""
        draft = self._draft()
        child = child_of(self.subject, self.plan, draft)
        known = self.base.by_path
        new = [
            file.path
            for file in draft.changed
            if file.path.startswith("solution/") and file.path not in known
        ]
        guess = Built(naive_without=[] if draft.naive else new)
        return child, naive_of(child, naive_edits(guess, draft))

    def _made_of(self, built: Built) -> Mutation | str:
        try:
            draft = self._draft()
        except DraftError as error:
            return str(error)
        said = complaint(self.subject, self.plan, built, draft)
        return said or mutation_of(self.subject, self.plan, built, draft)

    def _text(self, evidence: Verdict | None) -> str:
        subject, plan, bounds = self.subject, self.plan, self.means.bounds
        parts = ["Build the child that the plan describes."]
        if evidence is not None:
            parts = [
                "Repair your draft, which lies in `/bundle` (and `/naive`).",
                briefing.evidence_text(evidence, bounds),
                *self._handed_over(),
            ]
        parts += [briefing.plan_text(plan, subject, bounds), self._layout()]
        parts.append(briefing.environment(subject, bounds))
        return "\n\n".join(parts)

    def _handed_over(self) -> list[str]:
        """What was said beside the files of the earlier draft."""
        if self.earlier is None:
            return []
        demand = self.earlier.demand
        gone = [edit.path for edit in demand.omit if edit.file is None]
        return [
            f"You had named the checks {', '.join(demand.checks)}; the naive solution lacked"
            f" {', '.join(gone) or 'no file'}, and had other files as they lie in `/naive`."
        ]

    def _layout(self) -> str:
        """Where things go in this bundle."""
        name = demand_id(self.plan)
        rows = [f"- The demand's id is `{name}`."]
        if is_composed(self.base):
            steps = sorted(
                path.removeprefix("solution/steps/")
                for path in self.base.by_path
                if path.startswith("solution/steps/") and path.endswith(".sh")
            )
            rows += [
                f"- The bundle is in the composed layout, steps: {', '.join(steps)}.",
                f"- New checks go to `{checks_path(name)}` and are reported as `{name}.<name>`.",
            ]
        else:
            rows.append("- The bundle keeps its own layout: add to its tests in their own manner.")
        rows += [
            f"- Checks of the parent: {', '.join(parent_checks(self.subject)[:60])}.",
            f"- Declared artifacts: {', '.join(artifacts_of(self.base)) or 'none'}.",
        ]
        return "## The layout\n\n" + "\n".join(rows)

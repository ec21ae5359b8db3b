"""What the scripts of the models imply for a run, and where its record says something else."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from evolution.agents.assembling import base_of
from evolution.agents.proposer import PREFIX
from evolution.contracts import StepConfig, Subject
from evolution.directions import Direction
from evolution.engine import direction_order
from tests.harness.campaign import known, lost_answers, spent
from tests.harness.server import ModelServer
from tests.harness.server.models import NOTHING
from tests.harness.server.models.competent import Competent
from tests.harness.server.models.sloppy import Sloppy
from tests.harness.server.models.ways import Way
from webapp.models import Environment, Event, EvolutionRun, EvolutionStep, GateRecord
from webapp.selectors.lineages import ancestry
from webapp.services.environments import load_subject


@dataclass
class Findings:
    """Figures of a run, and where they differ from what is implied."""

    figures: dict[str, object] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def equal(self, what: str, found: object, implied: object) -> None:
        """Keep a figure that something implies."""
        self.figures[what] = found
        if found != implied:
            self.differences.append(f"{what}: {found}, and not {implied}")


def findings(run: EvolutionRun, server: ModelServer, script: Competent) -> Findings:
    """What came of a run without faults whose roles were all played by this script."""
    found = Findings()
    steps = list(run.steps.order_by("lineage", "generation"))
    accepted = [step.child for step in steps if step.child is not None]
    found.figures |= {
        "steps": len(steps),
        "children built": Environment.objects.filter(step__run=run).count(),
        "calls": len(server.served),
    }
    found.equal("tokens", spent(run), server.told())
    found.equal("tokens that the endpoint told", known(run), server.told())
    found.equal("answers lost", lost_answers(run, server), 0)
    refused = _refused(run)
    found.figures["drafts refused beyond what the script implies"] = sum(
        drafts.total() for drafts in refused.values()
    )
    implied = {step.pk: fallbacks(step, script, refused[step.pk]) for step in steps}
    made = Counter(Event.objects.filter(run=run, kind="fallback").values_list("step", flat=True))
    found.equal("fallbacks", made.total(), sum(implied.values()))
    odd = [f"{step} of {step.parent}" for step in steps if made[step.pk] != implied[step.pk]]
    found.equal("steps with other fallbacks", odd, [])
    fruitful = sum(count < len(Direction) for count in implied.values())
    found.equal("accepted children", len(accepted), fruitful)
    last = {step.lineage_id: step for step in steps}
    short = [s for s in last.values() if s.generation < run.generations and s.child is not None]
    found.equal("lineages that ended early with a child", short, [])
    flaws = [_flaws(child, script) for child in accepted]
    repairs = Counter(child.repair - _earlier(child) for child in accepted)
    found.equal("accepted children by repairs", dict(repairs), dict(Counter(map(len, flaws))))
    found.equal("gates that failed drafts", _failed(accepted), dict(Counter(chain(*flaws))))
    return found


def fallbacks(step: EvolutionStep, script: Competent, refused: Mapping[str, int]) -> int:
    """How many directions the script has nothing for, before the first that it has a way in.

    What the gates make of its ways from a parent it does not know: `refused` are those that they
    let pass in no form, and how many drafts of each.
    """
    config = StepConfig(seed=step.seed)
    subject = load_subject(step.parent)
    order = direction_order(subject, config)
    if isinstance(script, NOTHING):
        return len(order)
    taken = {_way(one) for one in ancestry(step.parent)}.union(refused)
    for number, direction in enumerate(order):
        known_ways = script.known(direction)
        ways = [way for way in known_ways if way.name not in taken]
        is_over = sum(refused.get(way.name, 0) for way in known_ways) > config.max_repairs
        if not is_over and any(_leads_somewhere(way, subject, script) for way in ways):
            return number
    return len(order)


def _refused(run: EvolutionRun) -> Mapping[int, Counter[str]]:
    """The ways whose drafts a gate failed and that came to nothing, with how many, by step."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    for draft in Environment.objects.filter(step__run=run).select_related("step__child"):
        assert draft.step is not None
        child = draft.step.child
        if (child is None or child.operator != draft.operator) and _failures(draft):
            found[draft.step.pk][_way(draft)] += 1
    return found


def _earlier(child: Environment) -> int:
    """How many drafts of other ways, in the child's direction, a gate had failed before."""
    drafts = Environment.objects.filter(step=child.step, direction=child.direction)
    return sum(bool(_failures(draft)) for draft in drafts.exclude(operator=child.operator))


def _failures(draft: Environment) -> list[str]:
    """The blocking gates that failed a draft."""
    records = GateRecord.objects.filter(verification__environment=draft)
    gates = records.filter(status="failed", is_blocking=True)
    return list(gates.values_list("gate", flat=True))


def _flaws(child: Environment, script: Competent) -> tuple[str, ...]:
    """The gates that the script has the drafts of this child fail."""
    if not isinstance(script, Sloppy) or child.parent is None:
        return ()
    return script.flaws(base_of(load_subject(child.parent)), _way(child))


def _leads_somewhere(way: Way, subject: Subject, script: Competent) -> bool:
    return not isinstance(script.workshop.child(base_of(subject), way.name), str)


def _way(environment: Environment) -> str:
    return environment.operator.removeprefix(PREFIX)


def _failed(accepted: list[Environment]) -> Mapping[str, int]:
    """Which gates failed the drafts that led to accepted children."""
    failed: Counter[str] = Counter()
    for child in accepted:
        for draft in Environment.objects.filter(step=child.step, operator=child.operator):
            failed.update(_failures(draft))
    return dict(failed)

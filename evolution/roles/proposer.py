"""The Proposer without a model: chooses an operator that fits, and plans its edit."""

from __future__ import annotations

import random
from collections.abc import Sequence

from evolution.contracts import Plan, StepConfig, Subject
from evolution.directions import Direction
from evolution.operators.base import Operator
from evolution.roles.findings import judged_operators
from evolution.roles.seeding import derived_random, derived_seed


def propose(
    subject: Subject,
    direction: Direction,
    config: StepConfig,
    findings: tuple[str, ...],
    operators: Sequence[Operator],
) -> Plan | str:
    """A plan in this direction, or one line that says why no operator does.

    Among those that fit it prefers operators that no sibling has, then cells that the lineage has
    not used, then the draw of the seed.
    """
    out = judged_operators(findings)
    refusals: list[str] = []
    fitting: list[Operator] = []
    for one in operators:
        if one.direction is not direction:
            continue
        reason = "was tried" if one.name in out else one.applies_to(subject)
        if reason is None:
            fitting.append(one)
        else:
            refusals.append(f"{one.name} {reason}" if one.name in out else f"{one.name}: {reason}")
    if not fitting:
        return f"no operator fits ({'; '.join(refusals) or 'none is known'})"
    rng = derived_random(subject.bundle.digest, config.seed, "propose", direction.value)
    chosen = ranked(fitting, subject, config, rng)[0]
    return plan_of(chosen, subject, config, rng.choice(chosen.notches), revision=len(findings))


def ranked(
    fitting: Sequence[Operator], subject: Subject, config: StepConfig, rng: random.Random
) -> list[Operator]:
    """The operators in order of preference."""
    cells = {(demand.direction, demand.aspect) for demand in subject.demands}
    draw = {one.name: rng.random() for one in sorted(fitting, key=lambda one: one.name)}
    return sorted(
        fitting,
        key=lambda one: (
            one.name in config.avoid,
            (one.direction, one.aspect) in cells,
            draw[one.name],
        ),
    )


def plan_of(
    operator: Operator, subject: Subject, config: StepConfig, notch: int, *, revision: int = 0
) -> Plan:
    """What applying this operator would come to, as a plan."""
    seed = derived_seed(subject.bundle.digest, config.seed, operator.name, operator.version)
    mutation = operator.apply(subject, notch, random.Random(seed))
    return Plan(
        operator=operator.name,
        direction=operator.direction,
        aspect=operator.aspect,
        effort=config.effort,
        notch=mutation.demand.notch,
        sequence=mutation.sequence,
        edit=mutation.edit,
        summary=f"{operator.title}, notch {mutation.demand.notch}",
        why=mutation.demand.why,
        seed=seed,
        revision=revision,
    )

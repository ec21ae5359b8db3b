"""The ways of hardening that the competent model knows, as plans say them."""

from __future__ import annotations

from dataclasses import dataclass

from evolution.directions import Direction, Effect
from evolution.operators.base import Operator
from tests.harness.server.models.craft import WRAPPERS, kebab

_NEW = {
    "foreign-encoding": "inputs in a foreign encoding",
    "damaged-mirrors": "an input that survives in damaged copies only",
    "stale-copies": "stale copies beside the current input",
    "collateral-guard": "leaving no trace among the inputs",
    "flaky-source": "fetching from a source that fails at times",
    "evidence-manifest": "finished results without provenance",
    "sealed-followup": "a sealed order that the first result opens",
}
_SKILLS = {
    "evidence-manifest": "tracing reported values to inputs",
    "sealed-followup": "unsealing and carrying out the follow-up",
}


@dataclass(frozen=True)
class Way:
    """One operator, in a model's words."""

    name: str
    operator: Operator

    @property
    def direction(self) -> Direction:
        """The direction in which it goes."""
        return self.operator.direction

    @property
    def effect(self) -> Effect:
        """How its demand is proved: never by a budget, which an author by hand cannot declare."""
        return self.operator.effect

    def pair(self, scenario: str, skill: str) -> tuple[str, str]:
        """The pair that stands in the place of this one, or is inserted."""
        new = _NEW[self.name]
        if self.direction is Direction.LENGTH:
            return new, _SKILLS[self.name]
        if self.direction is Direction.SCENARIO:
            return f"{scenario}; {new}", skill
        return scenario, f"{skill}, {new}"


WAYS = tuple(Way(kebab(one.name), one) for one in WRAPPERS if kebab(one.name) in _NEW)


def ways_in(direction: str) -> tuple[Way, ...]:
    """The ways that go in this direction, in a fixed order."""
    return tuple(way for way in WAYS if way.direction == direction)

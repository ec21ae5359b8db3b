"""The grid: three directions by three aspects; efforts; effect classes."""

from __future__ import annotations

from enum import StrEnum


class Direction(StrEnum):
    """Which term of the learning objective rises."""

    SCENARIO = "scenario"
    SKILL = "skill"
    LENGTH = "length"


class Aspect(StrEnum):
    """Which part of the environment carries the edit."""

    CONSTRAINTS = "constraints"
    RESOURCES = "resources"
    DYNAMICS = "dynamics"


class Effort(StrEnum):
    """How much of the scenario-skill sequence one step may edit: a pair, one span, anything."""

    LOW = "low"
    HIGH = "high"
    MAX = "max"


class Effect(StrEnum):
    """What "harder" means for an operator, and so how it is proved."""

    SOLUTION = "solution"
    VERIFIER = "verifier"
    BUDGET = "budget"
    OBSERVATION = "observation"

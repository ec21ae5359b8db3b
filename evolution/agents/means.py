"""What all roles work with."""

from __future__ import annotations

from dataclasses import dataclass, field

from evolution.agents.asking import Models
from evolution.agents.trimming import Bounds
from evolution.llm.calls import CallLog
from evolution.ports import TrialRunner, Workbench


@dataclass(frozen=True, slots=True)
class Turns:
    """How many requests each role may take for one answer."""

    propose: int = 6
    review: int = 6
    modify: int = 60
    exploit: int = 16
    judge: int = 6
    extract: int = 6
    solve: int = 60


@dataclass(frozen=True, slots=True)
class Means:
    """Models, sandboxes and bounds.

    `log` keeps what tools gave, beside the calls; without it a repeated step runs commands anew.
    """

    models: Models
    workbench: Workbench
    runner: TrialRunner
    log: CallLog | None = None
    bounds: Bounds = field(default_factory=Bounds)
    turns: Turns = field(default_factory=Turns)
    drafts: int = 12
    """How many trials of a draft one build may ask for."""

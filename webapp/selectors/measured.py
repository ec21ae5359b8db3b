"""One attempt that was measured: its steps and its terminal, made ready to be shown."""

from __future__ import annotations

from dataclasses import dataclass

from django.shortcuts import get_object_or_404

from evolution.trajectories import Step, cast_text, read_trajectory
from webapp.models import MeasuredTrial
from webapp.presentation.text import Excerpt, excerpt
from webapp.selectors.transcripts import Said, spoken
from webapp.store import CorruptStore, load_packed

STEP_CAP = 300
"""How many steps a page shows."""


@dataclass(frozen=True, slots=True)
class StepView:
    """A step with what was said, called and seen."""

    step: Step
    parts: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class MeasuredView:
    """What is kept of an attempt, beside its row."""

    agent: str
    steps: tuple[StepView, ...]
    missing_steps: int
    terminal: Excerpt | None
    output: Excerpt | None
    damage: str = ""


def get_measured(pk: int) -> MeasuredTrial:
    """The attempt with its solver and environment, or 404."""
    return get_object_or_404(MeasuredTrial.objects.select_related("solver", "environment"), pk=pk)


def view_measured(row: MeasuredTrial) -> MeasuredView:
    """Its trajectory, its terminal's text and what the verifier wrote, as far as they were kept."""
    try:
        trajectory = _stored(row.trajectory_digest)
        cast, output = _stored(row.cast_digest), _stored(row.output_digest)
    except CorruptStore as error:
        return MeasuredView("", (), 0, None, None, str(error))
    told = read_trajectory(trajectory)
    steps = told.steps if told is not None else ()
    shown = cast_text(cast)
    return MeasuredView(
        agent=" ".join(filter(None, (told.agent, told.model))) if told is not None else "",
        steps=tuple(StepView(step, _parts(step)) for step in steps[:STEP_CAP]),
        missing_steps=max(0, len(steps) - STEP_CAP),
        terminal=None if shown is None else excerpt(shown),
        output=excerpt(output.decode("utf-8", "replace")) if output else None,
    )


def cast_of(row: MeasuredTrial) -> bytes:
    """The cast as it was recorded; empty when none was kept. Raises CorruptStore."""
    return _stored(row.cast_digest)


def _stored(digest: str) -> bytes:
    return load_packed(digest) if digest else b""


def _parts(step: Step) -> tuple[Said, ...]:
    is_agent = step.source == "agent"
    found = []
    if step.thought:
        found.append(spoken("thinks", "thought", step.thought))
    if step.message:
        found.append(
            spoken(
                "answer" if is_agent else step.source, "own" if is_agent else "user", step.message
            )
        )
    for action in step.actions:
        if action.tool or action.arguments:
            found.append(spoken(f"calls {action.tool}".strip(), "own", action.arguments))
        if action.observation:
            found.append(spoken("result", "tool", action.observation))
    return tuple(found)

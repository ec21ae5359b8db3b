"""Words, icons and shapes for states, directions and aspects: one table each, used everywhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class State:
    """How a status is shown. `tone` is good, wait, bad or calm; `icon` names a drawing."""

    label: str
    icon: str
    tone: str


STATES: dict[str, State] = {
    "pending": State("pending", "clock", "wait"),
    "verifying": State("verifying", "spin", "wait"),
    "valid": State("valid", "check", "good"),
    "invalid": State("invalid", "cross", "bad"),
    "errored": State("errored", "bolt", "wait"),
    "unreviewed": State("unreviewed", "eye", "calm"),
    "approved": State("approved", "seal", "good"),
    "rejected": State("rejected", "ban", "bad"),
    "changes_requested": State("changes requested", "pen", "wait"),
    "undone": State("taken back", "undo", "calm"),
    "queued": State("queued", "clock", "calm"),
    "running": State("running", "spin", "wait"),
    "paused": State("paused", "pause", "wait"),
    "completed": State("completed", "check", "good"),
    "failed": State("failed", "cross", "bad"),
    "cancelled": State("cancelled", "ban", "calm"),
    "passed": State("passed", "check", "good"),
    "inconclusive": State("inconclusive", "question", "wait"),
    "not_applicable": State("not applicable", "dash", "calm"),
    "pass": State("pass", "check", "good"),
    "fail": State("fail", "cross", "bad"),
    "invalid_reward": State("invalid reward", "bolt", "bad"),
    "infra_error": State("machinery", "bolt", "wait"),
    "skipped": State("skipped", "dash", "calm"),
    "accepted": State("accepted", "check", "good"),
    "exhausted": State("exhausted", "cross", "bad"),
    "stalled": State("stalled", "bolt", "wait"),
    "seed": State("seed", "seed", "calm"),
    # What a triage says.
    "unsolved": State("unsolved", "eye", "calm"),
    "broken_oracle": State("broken oracle", "cross", "bad"),
    "infrastructure": State("infrastructure", "bolt", "wait"),
    "exploit_only": State("exploit only", "ban", "bad"),
    "unclear": State("unclear", "question", "wait"),
    # How a call to a model ended.
    "answered": State("answered", "check", "good"),
    "spoiled": State("answered with a fault", "cross", "bad"),
    "rate_limited": State("rate limited", "clock", "wait"),
    "server_error": State("server error", "bolt", "wait"),
    "connection": State("no connection", "bolt", "wait"),
    "timeout": State("timed out", "clock", "wait"),
    "refused": State("refused", "ban", "bad"),
    "empty": State("empty answer", "dash", "bad"),
    "malformed": State("malformed answer", "cross", "bad"),
    "too_large": State("answer too large", "cross", "bad"),
    "context_overflow": State("context overflow", "cross", "bad"),
    "bad_request": State("bad request", "cross", "bad"),
    "auth": State("key refused", "ban", "bad"),
    "budget": State("budget used up", "pause", "wait"),
    "circuit_open": State("endpoint rests", "pause", "wait"),
}

DIRECTIONS = ("scenario", "skill", "length")
ASPECTS = ("constraints", "resources", "dynamics")
SHAPES = {"constraints": "circle", "resources": "square", "dynamics": "triangle"}


def state(value: str) -> State:
    """How a status is shown; an unknown one by its own name."""
    return STATES.get(value, State(value.replace("_", " "), "dash", "calm"))


ICONS: dict[str, str] = {
    "check": '<path d="M3 8.5l3.2 3.3L13 4.5"/>',
    "cross": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "clock": '<circle cx="8" cy="8" r="5.5"/><path d="M8 5v3.2l2 1.4"/>',
    "spin": '<path d="M13.5 8A5.5 5.5 0 1 1 8 2.5"/>',
    "bolt": '<path d="M9 2L4 9h4l-1 5 5-7H8z"/>',
    "eye": '<path d="M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8z"/>'
    '<circle cx="8" cy="8" r="1.8"/>',
    "seal": '<circle cx="8" cy="8" r="6"/><path d="M5.2 8.2l2 2 3.6-4.2"/>',
    "ban": '<circle cx="8" cy="8" r="5.8"/><path d="M4 12l8-8"/>',
    "pen": '<path d="M3 13l.8-3L10.5 3.3l2.2 2.2L6 12.2z"/>',
    "undo": '<path d="M3 6h7a3 3 0 0 1 0 6H7M3 6l3-3M3 6l3 3"/>',
    "pause": '<path d="M5.5 3.5v9M10.5 3.5v9"/>',
    "question": '<path d="M5.5 6a2.5 2.5 0 1 1 3.4 2.3c-.7.3-.9.7-.9 1.4M8 12.4v.1"/>',
    "dash": '<path d="M4 8h8"/>',
    "seed": '<path d="M8 13.5V8M8 8c0-3 2-4.500 5-4.500C13 6.500 11 8 8 8zM8 9.500'
    'C8 7 6.500 5.500 3.500 5.500 3.500 8 5.500 9.500 8 9.500z"/>',
    "play": '<path d="M5 3.5l7 4.500-7 4.500z"/>',
    "stop": '<path d="M4 4h8v8H4z"/>',
    "home": '<path d="M2.500 8L8 3l5.500 5M4 7v6h8V7"/>',
    "box": '<path d="M2.500 5L8 2.500 13.500 5v6L8 13.500 2.500 11zM2.500 5L8 7.500 13.500 5'
    'M8 7.500v6"/>',
    "tree": '<path d="M3 3v8.500h4M3 6h4M9 6h4M9 11.500h4"/>',
    "run": '<path d="M2 12h3l2-8 3 8 1.500-4H14"/>',
    "stack": '<path d="M2.500 5.500L8 3l5.500 2.500L8 8zM2.500 8L8 10.500 13.500 8'
    'M2.500 10.500L8 13l5.500-2.500"/>',
    "log": '<path d="M3.500 4h9M3.500 8h9M3.500 12h6"/>',
    "chip": '<path d="M4.500 4.500h7v7h-7zM6.500 2v2.500M9.500 2v2.500'
    "M6.500 11.500V14M9.500 11.500V14M2 6.500h2.500M2 9.500h2.500"
    'M11.500 6.500H14M11.500 9.500H14"/>',
    "down": '<path d="M8 2.500v7.500M4.500 7L8 10.500 11.500 7M3 13.500h10"/>',
    "moon": '<path d="M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z"/>',
    "file": '<path d="M4 2.500h5l3 3v8H4zM9 2.500v3h3"/>',
    "folder": '<path d="M2 4h4l1.500 1.500H14V13H2z"/>',
}
"""Drawings on a 16 by 16 grid, stroked in the current colour."""

SANDBOXES: dict[str, str] = {
    "bubblewrap": "bubblewrap, on the host's /usr",
    "bubblewrap-image": "bubblewrap, on the image",
    "docker": "Docker",
}
"""Back-ends in words, with what their root file system is."""

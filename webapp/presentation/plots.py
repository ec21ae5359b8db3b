"""Small plots as prepared coordinates: templates draw them, each beside its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, in pixels, and its label."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Point:
    """A value in pixels with the words for it."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of points over a shared x axis."""

    width: int
    height: int
    points: tuple[Point, ...]
    path: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    base: float


LEFT, RIGHT, TOP, BOTTOM = 40, 12, 12, 24


def curve(
    values: Sequence[tuple[int, float | None, int]], *, width: int = 320, height: int = 150
) -> Curve | None:
    """A curve of (x, y, n); None when fewer than one y is known. The y axis begins at 0."""
    known = [(x, y, n) for x, y, n in values if y is not None]
    if not known:
        return None
    ticks = nice_ticks(max(y for _, y, _ in known))
    top = ticks[-1]
    xs = [x for x, _, _ in known]
    low, span = min(xs), max(1, max(xs) - min(xs))
    inner_width, inner_height = width - LEFT - RIGHT, height - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        right = LEFT + (x - low) / span * inner_width
        return round(right, 1), round(TOP + (1 - y / top) * inner_height, 1)

    points = tuple(Point(*place(x, y), f"generation {x}: {y:.2f}, n = {n:,}") for x, y, n in known)
    every = max(1, ceil((span + 1) / 16))
    return Curve(
        width,
        height,
        points,
        "M" + "L".join(f"{p.x} {p.y}" for p in points),
        tuple(Tick(place(x, 0)[0], str(x)) for x in range(low, low + span + 1, every)),
        tuple(Tick(place(low, y)[1], f"{y:g}") for y in ticks),
        float(TOP + inner_height),
    )


def nice_ticks(highest: float, wanted: int = 4) -> list[float]:
    """Round steps from 0 to at least `highest`."""
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / wanted
    scale = 10 ** floor(log10(raw))
    step = next(m * scale for m in (1, 2, 2.5, 5, 10) if m * scale >= raw)
    return [round(step * i, 10) for i in range(ceil(highest / step - 1e-9) + 1)]

"""The corpus that is made here: sound environments, and one for every way to spoil one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from random import Random

from bench.corpus import defects_basic, defects_judging, defects_leak, defects_running
from bench.corpus.defects import ONE_FILE, Defect, separate
from bench.corpus.entries import ORIGINS, SOUND, Entry
from bench.corpus.layout import laid_out
from bench.corpus.sound import work_of, works
from evolution.bundle import Bundle, with_config

MUST_CATCH = ("oracle_broken", "nop_passes", "leak", "exploitable")
"""The kinds of which none may be missed."""
INSTANCES, MUST_INSTANCES = 5, 22
_SPOILED_SEEDS = 100
"""Spoiled works have other seeds than the sound ones."""


def kinds(today: date) -> dict[str, tuple[Defect, ...]]:
    """All kinds of defects with their ways, but near-duplicates, which take two bundles."""
    found: dict[str, tuple[Defect, ...]] = {}
    for module in (defects_basic, defects_leak, defects_judging, defects_running):
        found |= module.KINDS
    return found | {"time_bomb": defects_running.time_bombs(today)}


def built_in(today: date | None = None) -> tuple[Entry, ...]:
    """The whole corpus. `today` is the day from which time bombs count; only they depend on it."""
    today = today or datetime.now(UTC).date()
    sound = list(_sound())
    spoiled = [entry for kind, ways in kinds(today).items() for entry in _spoiled(kind, ways)]
    return (*sound, *spoiled, *_duplicates())


def _sound() -> Iterator[Entry]:
    """The sound ones; each is compared with some of other styles."""
    made = [(name, laid_out(work, name)) for name, work in works()]
    styles = len({name.rpartition("-")[0] for name, _ in made})
    for at, (name, bundle) in enumerate(made):
        others = tuple(made[(at + step) % len(made)] for step in (1, 7, styles - 1))
        yield Entry(name, SOUND, bundle, ORIGINS[at % 3 == 2], others)


def _spoiled(kind: str, ways: tuple[Defect, ...]) -> Iterator[Entry]:
    least = MUST_INSTANCES if kind in MUST_CATCH else INSTANCES
    for number in range(max(least, len(ways))):
        way = ways[number % len(ways)]
        name = f"{kind}-{number}"
        yield Entry(name, kind, spoiled(way, name, number), ORIGINS[number % 2])


def spoiled(way: Defect, name: str, number: int) -> Bundle:
    """A bundle that is spoiled in this way; `number` chooses the work."""
    rng = Random(name)
    style = way.styles[(number + number // len(way.styles)) % len(way.styles)]
    work = work_of(style, _SPOILED_SEEDS + number)
    work = way.work(work, rng) if way.work else separate(work)
    bundle = laid_out(work, name)
    return way.bundle(bundle, work, rng) if way.bundle else bundle


def _duplicates() -> Iterator[Entry]:
    """Near-duplicates of a sound one: renamed, in other words, of other data."""
    for number in range(2 * INSTANCES):
        style = ONE_FILE[(3 * number) % len(ONE_FILE)]
        work = separate(work_of(style, _SPOILED_SEEDS + number))
        first = laid_out(work, "first")
        name = f"near_duplicate-{number}"
        if number % 3 == 0:
            second = with_config(first, {("task", "name"): f"corpus/{name}"})
        elif number % 3 == 1:
            said = work.instruction.replace("Write", "Please write")
            second = laid_out(replace(work, instruction=said), name)
        else:
            second = laid_out(separate(work_of(style, 3 * _SPOILED_SEEDS + number)), name)
        yield Entry(name, "near_duplicate", second, ORIGINS[number % 2], (("first", first),))

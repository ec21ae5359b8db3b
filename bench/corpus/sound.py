"""The sound environments: every style of work with several seeds, judged by tests of every make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from bench.corpus import logs, prose, records, systems, tables, trees
from bench.corpus.layout import MAKES, Work

Style = Callable[[Random], Work]
STYLES: dict[str, Style] = {
    style.__name__: style
    for module in (tables, logs, trees, prose, systems, records)
    for style in module.STYLES
}
"""All styles by name."""
IN_PLACE = frozenset({"repaired_build"})
"""Styles whose work changes the data itself, which a user without rights may not."""
COUNT = 150
"""How many sound environments there are."""


def work_of(style: str, seed: int) -> Work:
    """One sound work. The make of its tests, and where they run, follow from the seed, too."""
    work = STYLES[style](Random(f"{style}:{seed}"))
    turn = list(STYLES).index(style) + seed
    if work.make == "runner":
        work = replace(work, make=MAKES[turn % len(MAKES)])
    if style not in IN_PLACE and not work.build and not work.is_shared and turn % 7 == 3:
        work = replace(work, is_shared=True, agent_user="nobody")
    return replace(work, memory_mb=(256, 512, 1024)[turn % 3])


def works(count: int = COUNT) -> Iterator[tuple[str, Work]]:
    """So many sound works, every style in turn, under the name `<style>-<seed>`."""
    styles = list(STYLES)
    for at in range(count):
        seed, turn = divmod(at, len(styles))
        yield f"{styles[turn]}-{seed}", work_of(styles[turn], seed)

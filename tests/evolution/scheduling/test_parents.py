"""Parents are chosen from the lineage's own results and the seed alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.scheduling import Node, choose_parent, choose_parents

DIGESTS = st.lists(
    st.text("0123456789abcdef", min_size=4, max_size=4), min_size=1, max_size=8, unique=True
)


@settings(max_examples=30, deadline=None)
@given(DIGESTS, st.integers(0, 99))
def test_children_spread_evenly_over_the_candidates(digests: list[str], seed: int) -> None:
    chosen = [choose_parent(digests, seed=seed, ordinal=at) for at in range(2 * len(digests))]
    assert set(Counter(chosen).values()) == {2}


@settings(max_examples=30, deadline=None)
@given(DIGESTS, st.integers(0, 99), st.integers(0, 9))
def test_the_order_of_the_candidates_does_not_matter(
    digests: list[str], seed: int, ordinal: int
) -> None:
    turned = digests[::-1]
    one = digests[choose_parent(digests, seed=seed, ordinal=ordinal)]
    assert turned[choose_parent(turned, seed=seed, ordinal=ordinal)] == one


def test_without_a_candidate_there_is_no_choice() -> None:
    with pytest.raises(ValueError, match="no parent"):
        choose_parent([], seed=0, ordinal=0)


def nodes(*generations: int) -> list[Node]:
    return [Node(f"{at:02d}", generation) for at, generation in enumerate(generations)]


def test_parents_are_of_the_latest_generation_before() -> None:
    lineage = nodes(0, 1, 1, 2)
    assert set(choose_parents(lineage, 2, 4, seed=1)) == {"01", "02"}
    assert set(choose_parents(lineage, 3, 2, seed=1)) == {"03"}
    assert set(choose_parents(lineage, 5, 2, seed=1)) == {"03"}
    assert choose_parents([], 1, 2, seed=1) == ()


def test_no_parent_gets_more_than_its_share() -> None:
    assert len(choose_parents(nodes(0), 1, 9, seed=1)) == 4
    assert Counter(choose_parents(nodes(0, 1, 1), 2, 9, seed=1)).most_common(1)[0][1] == 4


def test_the_seed_decides_who_comes_first() -> None:
    lineage = nodes(0, 1, 1, 1)
    assert {choose_parents(lineage, 2, 1, seed=seed) for seed in range(20)} == {
        ("01",),
        ("02",),
        ("03",),
    }

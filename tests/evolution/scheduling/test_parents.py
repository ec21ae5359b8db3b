"""Parents are chosen from the lineage's own results and the seed alone."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.scheduling import choose_parent

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

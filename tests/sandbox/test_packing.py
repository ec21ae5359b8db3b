"""The rules of packing, over random histories of requests."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.packing import Capacity, Entry, Queue, choose_cpus

_CAPACITY = Capacity(2.0, 4000, (0, 1))


def _entry(party: str = "a", cpus: float = 1.0, memory: int = 0) -> Entry:
    return Entry(0, party, 0, round(cpus * 1000), memory, is_pinned=True)


def _serve(queue: Queue, capacity: Capacity = _CAPACITY) -> list[Entry]:
    served = []
    while (first := queue.first()) is not None and queue.fits(first, capacity):
        served.append(queue.admit(first.number, capacity, 0.0))
    return served


_EVENTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("join"),
            st.sampled_from("abc"),
            st.sampled_from([0.1, 0.25, 0.5, 1.0, 1.5, 2.0]),
            st.integers(0, 4000),
        ),
        st.tuples(st.just("release"), st.integers(0, 9)),
        st.tuples(st.just("die"), st.integers(0, 9)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(_EVENTS)
def test_every_history_keeps_the_rules(events: list[tuple[str, ...]]) -> None:
    queue = Queue()
    ahead: dict[int, int] = {}
    overtaken: dict[int, Counter[str]] = {}
    last: dict[str, int] = {}
    for kind, *values in events:
        if kind == "join":
            party, cpus, memory = values
            own = sum(entry.party == party for entry in queue.waiting)
            number = queue.join(_entry(party, float(cpus), int(memory))).number
            ahead[number], overtaken[number] = own, Counter()
        elif kind == "release" and queue.held:
            queue.drop(queue.held[int(values[0]) % len(queue.held)].number)
        elif kind == "die" and queue.waiting:
            queue.drop(queue.waiting[int(values[0]) % len(queue.waiting)].number)
        for served in _serve(queue):
            assert served.number > last.get(served.party, 0), "in order within a party"
            last[served.party] = served.number
            for other in queue.waiting:
                overtaken[other.number][served.party] += 1
        assert sum(entry.millicpus for entry in queue.held) <= _CAPACITY.millicpus
        assert sum(entry.memory_bytes for entry in queue.held) <= _CAPACITY.memory_bytes
        first = queue.first()
        assert first is None or not queue.fits(first, _CAPACITY), "nothing is idle"
        for entry in queue.waiting:
            counts = overtaken[entry.number]
            del counts[entry.party]
            assert all(count <= ahead[entry.number] + 2 for count in counts.values())


def test_parties_take_turns_however_many_one_of_them_has_waiting() -> None:
    queue = Queue()
    one = Capacity(1.0, 0, (0,))
    for _ in range(20):
        queue.join(_entry("early"))
    order = []
    for _ in range(5):
        order += [entry.party for entry in _serve(queue, one)]
        queue.drop(queue.held[0].number)
    for _ in range(3):
        queue.join(_entry("late"))
    for _ in range(8):
        order += [entry.party for entry in _serve(queue, one)]
        queue.drop(queue.held[0].number)
    assert order == ["early"] * 5 + ["early", "late"] * 3 + ["early"] * 2


def test_new_parties_that_keep_coming_do_not_starve_who_waits() -> None:
    queue = Queue()
    one = Capacity(1.0, 0, (0,))
    for _ in range(3):
        queue.join(_entry("patient"))
    order = []
    for number in range(9):
        queue.join(_entry(f"new {number}"))
        order += [entry.party for entry in _serve(queue, one)]
        queue.drop(queue.held[0].number)
    assert [place for place, party in enumerate(order) if party == "patient"] == [0, 2, 5]


def test_requests_that_died_cost_their_party_no_turns() -> None:
    queue = Queue()
    for number in [queue.join(_entry("a")).number for _ in range(50)]:
        queue.drop(number)
    queue.join(_entry("b"))
    assert queue.join(_entry("a")).turn == 1


def test_a_large_request_keeps_its_turn() -> None:
    queue = Queue()
    queue.join(_entry("small"))
    (held,) = _serve(queue)
    large = queue.join(_entry("large", cpus=2.0))
    queue.join(_entry("small"))
    assert _serve(queue) == []
    queue.drop(held.number)
    assert [entry.number for entry in _serve(queue)] == [large.number]


@pytest.mark.parametrize(
    ("cpus", "count"), [(1.0, 2), (0.5, 4), (0.1, 20), (0.3, 6), (1.5, 1), (2.0, 1)]
)
def test_fractions_of_a_cpu_pack_exactly(cpus: float, count: int) -> None:
    queue = Queue()
    for _ in range(25):
        queue.join(_entry(cpus=cpus))
    assert len(_serve(queue)) == count


def test_parts_share_a_cpu_and_whole_ones_get_their_own() -> None:
    queue = Queue()
    for cpus in (0.5, 0.5, 1.0):
        queue.join(_entry(cpus=cpus))
    assert [entry.cpu_set for entry in _serve(queue)] == [(0,), (0,), (1,)]


def test_a_place_that_comes_free_in_the_middle_is_used_again() -> None:
    queue = Queue()
    capacity = Capacity(4.0, 0, (0, 1, 2, 3))
    for _ in range(4):
        queue.join(_entry())
    served = _serve(queue, capacity)
    queue.drop(served[1].number)
    queue.join(_entry())
    assert _serve(queue, capacity)[0].cpu_set == (1,)


def test_when_all_cpus_are_needed_none_is_named() -> None:
    assert choose_cpus(_entry(cpus=2.0), [], _CAPACITY) == ()


def test_more_places_than_cpus_spread_evenly() -> None:
    queue = Queue()
    double = Capacity(4.0, 0, (0, 1))
    for _ in range(4):
        queue.join(_entry())
    sets = Counter(entry.cpu_set for entry in _serve(queue, double))
    assert sets == {(0,): 2, (1,): 2}

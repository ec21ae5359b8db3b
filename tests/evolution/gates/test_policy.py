"""The table of gates: everything that is asked has its place in it."""

from __future__ import annotations

from evolution.gates.policy import TABLE, Depth, Policy, Reach, reach
from evolution.gates.protocol import GATES


def test_the_table_lists_the_gates_in_the_order_in_which_they_are_asked() -> None:
    assert list(TABLE) == [*GATES]


def test_what_is_imported_blocks_on_four_gates() -> None:
    for depth in Depth:
        blocking = {g for g in TABLE if reach(g, Policy.IMPORTED, depth) is Reach.BLOCKING}
        assert blocking == {"format", "build", "oracle", "nop"}


def test_what_is_made_blocks_on_every_gate_that_is_asked() -> None:
    for depth in Depth:
        assert {reach(gate, Policy.MADE, depth) for gate in TABLE} <= {
            Reach.BLOCKING,
            Reach.NOT_RUN,
        }


def test_everything_is_asked_in_the_full_protocol() -> None:
    for policy in Policy:
        assert all(reach(gate, policy, Depth.FULL) is not Reach.NOT_RUN for gate in TABLE)

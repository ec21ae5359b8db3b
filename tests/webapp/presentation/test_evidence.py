"""Evidence in rows: what repeats itself is one row, and nothing else is folded."""

from __future__ import annotations

from typing import Any

from webapp.presentation.evidence import evidence_table


def run(number: int, **fields: Any) -> dict[str, Any]:
    said = {"label": f"oracle, run {number}", "result": "reward 1", "trial": number}
    return said | fields


def test_runs_that_say_the_same_are_one_row_with_all_trials() -> None:
    table = evidence_table([run(1), run(2), run(3)])
    assert [(row.label, row.trials) for row in table.rows] == [("oracle, run 1 to 3", (1, 2, 3))]


def test_what_differs_in_result_output_or_exit_stands_alone() -> None:
    table = evidence_table(
        [run(1), run(2, result="reward 0"), run(3, exit_status=1), run(4, last_lines="x"), run(5)]
    )
    assert [row.label[-1] for row in table.rows] == ["1", "2", "3", "4", "5"]
    assert len(evidence_table([{"label": "a"}, {"label": "b"}]).rows) == 2


def test_few_outputs_are_unfolded_and_columns_without_content_are_known() -> None:
    assert evidence_table([run(n, last_lines=f"{n}") for n in range(3)]).is_unfolded
    assert not evidence_table([run(n, last_lines=f"{n}") for n in range(4)]).is_unfolded
    assert evidence_table([run(1)]).has_trials
    assert not evidence_table([{"label": "a copy", "result": "found"}]).has_trials

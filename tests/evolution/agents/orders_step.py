"""A step over the orders environment as a model that knows its trade would take it."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse, ToolCallPart

from evolution.llm.calls import Role
from tests.evolution.agents.scripted import Speaker, calls, in_turn, says

STEP = """\
#!/bin/bash
set -euo pipefail
python3 -I -B - <<'END'
import csv, json
with open("/app/out/report.json") as source:
    totals = {name: value for name, value in json.load(source).items() if name != "days"}
with open("/app/out/ranking.csv", "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(["rank", "customer", "total"])
    for rank, name in enumerate(sorted(totals, key=lambda one: (-totals[one], one)), 1):
        writer.writerow([rank, name, totals[name]])
END
"""
CHECKS = '''\
"""The ranking follows from the orders."""
import csv


def rows(path):
    with open(path, newline="") as source:
        return list(csv.DictReader(source))


def check_ranking():
    totals = {}
    for row in rows("/app/data/orders.csv"):
        totals[row["customer"]] = totals.get(row["customer"], 0) + int(row["amount"])
    wanted = sorted(totals, key=lambda one: (-totals[one], one))
    with open("/app/out/ranking.csv") as source:
        assert source.readline().strip() == "rank,customer,total", "another header"
    found = rows("/app/out/ranking.csv")
    assert [row["customer"] for row in found] == wanted, "another order"
    assert [int(row["total"]) for row in found] == [totals[name] for name in wanted], "totals"
    assert [int(row["rank"]) for row in found] == list(range(1, len(wanted) + 1)), "ranks"
'''
INSTRUCTION = """\
# Orders

Read `/app/data/orders.csv` (columns: customer, day, amount in cents) and write
`/app/out/report.json`: an object with the total amount of every customer, and under `days` the
number of different days.

The sales team works from a ranking of the report: write `/app/out/ranking.csv` with the header
`rank,customer,total`, the customer with the largest total first, customers with equal totals by
name, ranks from 1.
"""
PROPOSAL = {
    "operator": "ranking-from-report",
    "aspect": "constraints",
    "effect": "solution",
    "edits": [{"index": 2, "scenario": "a report to be read again", "skill": "ranking totals"}],
    "summary": "A ranking is made from the report",
    "why": "the ranking depends on a right report and on an order for equal totals",
    "details": "a step after the base writes ranking.csv; one check; naive stops at the report",
}
BUILT: dict[str, object] = {
    "title": "A ranking from the report",
    "why": "it depends on the report",
    "requirement": "A ranking of the customers by total is written to `/app/out/ranking.csv`.",
    "checks": ["ranking-from-report.ranking"],
    "naive_without": ["steps/60-ranking.sh"],
    "results": ["/app/out/ranking.csv"],
}


def files(checks: str = CHECKS) -> tuple[ToolCallPart, ...]:
    """The calls that write the child."""
    return (
        calls(
            "write_file",
            path="/bundle/solution/steps/60-ranking.sh",
            content=STEP,
            is_executable=True,
        ),
        calls("write_file", path="tests/demands/ranking-from-report.py", content=checks),
        calls("write_file", path="instruction.md", content=INSTRUCTION),
    )


def rulings(**failed: str) -> ModelResponse:
    """The Judge's answer; `failed` are quotes by rubric (underscores for dashes)."""
    names = ("real-work", "discoverable", "as-one-text", "method-free", "plausible")
    wrong = {name.replace("_", "-"): quote for name, quote in failed.items()}
    return says(
        calls(
            "finish",
            rulings=[
                {
                    "rubric": name,
                    "passed": name not in wrong,
                    "quote": wrong.get(name, "write"),
                    "reason": "so it stands there",
                }
                for name in names
            ],
        )
    )


def competent(**others: Speaker) -> dict[Role, Speaker]:
    """Scripts of all roles of a step that succeeds; `others` replace some by the role's name."""
    scripts: dict[Role, Speaker] = {
        Role.PROPOSER: in_turn(says(calls("finish", **PROPOSAL))),
        Role.PLAN_REVIEWER: in_turn(says(calls("finish", accepted=True))),
        Role.MODIFIER: in_turn(
            says(calls("run", command="bash /solution/solve.sh; cat /app/out/report.json")),
            says(*files()),
            says(calls("run", command="bash /solution/solve.sh && head -3 /app/out/ranking.csv")),
            says(calls("try_draft", solution="reference"), calls("try_draft", solution="naive")),
            says(calls("finish", **BUILT)),
        ),
        Role.JUDGE: in_turn(rulings()),
        Role.EXPLOITER: in_turn(
            says(calls("run", command="ls -R /app")), says(calls("finish", script="", how=""))
        ),
    }
    return scripts | {Role(name): speaker for name, speaker in others.items()}

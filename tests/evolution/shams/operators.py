"""Sham operators: each claims to make the environment harder and does not."""

from __future__ import annotations

from functools import partial

from bench.sham_worlds import World, checked, claim
from evolution.bundle import Bundle
from evolution.contracts import Mutation
from evolution.directions import Effect
from sandbox.contracts import SandboxFile
from tests.evolution.real_sandbox import edited, orders, subject_of

ORDERS = World("orders", subject_of(orders()))
mutation = partial(claim, ORDERS)
more_checks = partial(checked, ORDERS)


def rename_only() -> Mutation:
    """The report has another name; everything that the parent did is right once it is renamed."""
    base = orders()
    names = ("report.json", "summary.json")
    child = base.with_files(
        [
            edited(base, "instruction.md", names),
            edited(base, "tests/checks.py", names, ("check_days", "check_days_in_summary")),
            edited(
                base,
                "solution/solve.sh",
                ("report.py\n", "report.py\nmv /app/out/report.json /app/out/summary.json\n"),
            ),
        ]
    )
    naive = child.with_files([base.by_path["solution/solve.sh"]])
    either = "next(p for p in PLACES if __import__('os').path.exists(p))"
    places = ("/app/out/report.json", "/app/out/summary.json")
    tolerant = edited(base, "tests/checks.py", (f'"{places[0]}"', either))
    switched_off = SandboxFile(tolerant.path, f"PLACES = {places}\n".encode() + tolerant.data)
    control = child.with_files([switched_off])
    new, premise = ("days_in_summary",), ("totals",)
    return mutation("rename_only", child, naive=naive, control=control, checks=new, premise=premise)


def prose_only() -> Mutation:
    """The instruction sounds harder; nothing is checked that was not checked before."""
    base = orders()
    text = base.instruction + "\nThis is a critical system: be extremely careful and thorough.\n"
    child = base.with_files([SandboxFile("instruction.md", text.encode())])
    return mutation("prose_only", child, naive=child, control=child, checks=("totals",))


def prose_with_a_promise() -> Mutation:
    """The same, with a check that exists in the demand's record only."""
    base = prose_only()
    return mutation(
        "prose_only", base.child, naive=base.child, control=base.child, checks=("care_is_taken",)
    )


def demand_already_met() -> Mutation:
    """A new check that the parent's work meets already; the adaptation rewrites what is there."""
    base = orders()
    added = (
        "def check_totals_are_whole():\n    assert all(type(v) is int for v in report().values())\n"
    )
    rewrite = "report.py\npython3 -m json.tool --sort-keys /app/out/report.json /tmp/r\n"
    child = base.with_files(
        [
            more_checks(added),
            edited(base, "solution/solve.sh", ("report.py\n", rewrite)),
        ]
    )
    naive = child.with_files([base.by_path["solution/solve.sh"]])
    control = child.with_files([base.by_path["tests/checks.py"]])
    return mutation(
        "demand_already_met", child, naive=naive, control=control, checks=("totals_are_whole",)
    )


def limit_above_naive() -> Mutation:
    """A size limit that even the wasteful report keeps."""
    base = orders()
    added = (
        "def check_report_is_small():\n    import os\n"
        '    assert os.path.getsize("/app/out/report.json") <= 5000\n'
    )
    compact = edited(base, "solution/report.py", ("indent=2", "separators=(',', ':')"))
    child = base.with_files([more_checks(added), compact])
    naive = child.with_files([base.by_path["solution/report.py"]])
    control = child.with_files([base.by_path["tests/checks.py"]])
    return mutation(
        "limit_above_naive",
        child,
        naive=naive,
        control=control,
        checks=("report_is_small",),
        effect=Effect.BUDGET,
        facts=(
            ("budget_kind", "bytes"),
            ("budget_limit", "5000"),
            ("budget_path", "/app/out/report.json"),
        ),
    )


def with_a_note() -> Bundle:
    """A parent that has one more file in its image."""
    note = b"Discounts are granted by the sales team, see the intranet page on rebates.\n"
    return orders(SandboxFile("environment/data/NOTE.txt", note))


def missing_file_that_nobody_needs() -> Mutation:
    """A file of the image is gone, and the work is what it was."""
    child = orders()
    return mutation("missing_file", child, naive=child, control=with_a_note(), checks=("totals",))


def missing_file_brought_along() -> Mutation:
    """The input is gone, and only the reference solution knows what was in it."""
    base = orders()
    data = base.text("environment/data/orders.csv")
    restore = f"cat > /app/data/orders.csv <<'END'\n{data}END\npython3 -I"
    child = base.with_files(
        [
            SandboxFile("environment/data/.keep", b"kept\n"),
            edited(base, "solution/solve.sh", ("python3 -I", restore)),
            more_checks("def check_input_was_restored():\n    assert report()\n"),
        ],
        ["environment/data/orders.csv"],
    )
    naive = child.with_files([base.by_path["solution/solve.sh"]])
    control = child.with_files([base.by_path["environment/data/orders.csv"]])
    return mutation(
        "missing_file",
        child,
        naive=naive,
        control=control,
        checks=("input_was_restored",),
        premise=("totals", "days"),
    )


def wasteful() -> Bundle:
    """A parent whose report is mostly white space."""
    return orders(edited(orders(), "solution/report.py", ("indent=2", "indent=400")))


def compact_report() -> Mutation:
    """No sham: the report must fit into a limit that the parent's way of writing breaks."""
    parent = wasteful()
    added = (
        "def check_report_is_small():\n    import os\n"
        '    assert os.path.getsize("/app/out/report.json") <= 800\n'
    )
    compact = edited(parent, "solution/report.py", ("indent=400", "separators=(',', ':')"))
    child = parent.with_files([more_checks(added), compact])
    return mutation(
        "compact_report",
        child,
        naive=parent,
        control=child.with_files([parent.by_path["tests/checks.py"]]),
        checks=("report_is_small",),
        effect=Effect.BUDGET,
        facts=(
            ("budget_kind", "bytes"),
            ("budget_limit", "800"),
            ("budget_path", "/app/out/report.json"),
        ),
    )

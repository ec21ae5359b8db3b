"""manage.py measure"""

from __future__ import annotations

import json
import os
import threading
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from evolution.difficulty.posterior import pass_rate
from evolution.llm.calls import BudgetStop, ModelUnavailable, StepBudgetStop
from evolution.llm.endpoints import ModelConfigError
from evolution.plain_text import plain
from webapp.management.errands import errand_all
from webapp.management.reporting import (
    add_budget_options,
    add_sandbox_option,
    find_environments,
    format_table,
    given_budget,
    refuse_unheeded,
)
from webapp.models import Environment, ErrandKind, MeasuredTrial, Solver
from webapp.services import attempts, budgets
from webapp.services.errors import InvalidInput

if TYPE_CHECKING:
    from webapp.adapters.measuring import Bench

EXAMPLES = """examples:
  manage.py measure nginx-log-forensics --attempts 5 --budget-usd 4
  manage.py measure 12 13 14 --solver llm --attempts 3 --budget-tokens 2000000 --json
  manage.py measure 12 --triage --budget-tokens 200000
"""

STOPS = (BudgetStop, StepBudgetStop, ModelUnavailable, ModelConfigError)


class Command(BaseCommand):
    """Let a solver attempt environments, and count how often it passes."""

    help = "Measure difficulty: attempts by a solver with a model, judged like any other trial."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The command line."""
        parser.epilog = EXAMPLES
        parser.formatter_class = RawDescriptionHelpFormatter
        parser.add_argument("environments", nargs="+", metavar="ID", help="id, digest or name")
        parser.add_argument(
            "--solver", choices=["llm"], default="llm", help="the terminal agent with the model"
        )
        parser.add_argument("--attempts", type=int, default=3, help="new ones per environment")
        parser.add_argument(
            "--triage", action="store_true", help="no attempts: say why nobody has passed these"
        )
        add_budget_options(parser, "by the wall")
        add_sandbox_option(parser)
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
        self._defaults = {name: parser.get_default(name) for name in ("attempts", "sandbox")}

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print; status 0 only when every attempt was made."""
        if not 1 <= options["attempts"] <= 1_000:
            raise CommandError("--attempts must be between 1 and 1000")
        budget = given_budget(options)
        if options["triage"]:
            refuse_unheeded(options, self._defaults, "--triage")
            errand_all(
                options["environments"],
                ErrandKind.TRIAGE,
                budget,
                self.stdout,
                is_json=options["json"],
            )
            return
        wanted = list(find_environments(options["environments"]))
        try:
            budgets.check_budget(budget)
            from webapp import model_wiring  # takes seconds

            bench = model_wiring.solver_bench(budget, options["sandbox"])
        except (InvalidInput, ModelConfigError) as error:
            raise CommandError(str(error)) from None
        jobs = [
            (environment, number)
            for environment in wanted
            for number in attempts.open_numbers(
                bench.solver, attempts.measured_name(environment), options["attempts"]
            )
        ]
        stopped = self._carry_out(bench, jobs)
        self._print(bench.solver, wanted, is_json=options["json"])
        if stopped:
            way = "the same command goes on from there, a used-up budget made larger"
            raise CommandError(f"{stopped}; {way}")

    def _carry_out(self, bench: Bench, jobs: list[tuple[Environment, int]]) -> str:
        """Make the attempts, some at once; one line when they had to stop."""
        from webapp.adapters import measuring

        stop = threading.Event()

        def work(environment: Environment, number: int) -> MeasuredTrial | None:
            try:
                return None if stop.is_set() else measuring.attempt(bench, environment, number)
            finally:
                connection.close()

        said = ""
        with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
            futures = [(e, n, pool.submit(work, e, n)) for e, n in jobs]
            for environment, number, future in futures:
                try:
                    row = future.result()
                except STOPS as error:
                    stop.set()
                    said = said or plain(str(error))
                    continue
                if row is not None:
                    self.stderr.write(f"{environment.name}: attempt {number}: {_words(row)}")
        return said

    def _print(self, solver: Solver, wanted: list[Environment], *, is_json: bool) -> None:
        found = [_figures(solver, environment) for environment in wanted]
        if is_json:
            self.stdout.write(json.dumps({"solver": solver.name, "environments": found}))
            return
        head = ["id", "name", "passed", "n", "rate", "low", "high", "not counted", "tokens", "usd"]
        self.stdout.write(
            format_table(head, [["–" if v is None else v for v in row.values()] for row in found])
        )


def _words(row: MeasuredTrial) -> str:
    word = "passed" if row.is_passed else "failed" if row.counts else "does not count"
    return f"{word}{f' ({row.cause})' if row.cause else ''}"


def _figures(solver: Solver, environment: Environment) -> dict[str, Any]:
    """All attempts of the solver at an environment: the rate, its interval, what it took."""
    rows = list(MeasuredTrial.objects.filter(solver=solver, environment=environment))
    counted = [row for row in rows if row.counts]
    passed = sum(row.is_passed for row in counted)
    rate = pass_rate(passed, len(counted)) if counted else None
    return {
        "id": environment.pk,
        "name": environment.name,
        "passed": passed,
        "n": len(counted),
        "rate": rate.mean if rate else None,
        "low": rate.low if rate else None,
        "high": rate.high if rate else None,
        "not_counted": len(rows) - len(counted),
        "tokens": sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in rows),
        "usd": round(sum(row.usd or 0.0 for row in rows), 6),
    }

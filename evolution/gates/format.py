"""`format`: is the bundle well-formed?"""

from __future__ import annotations

from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, passed
from evolution.gates.case import Case
from evolution.task_config import Severity
from evolution.validation import validate_bundle

GATE = "format"


def check(case: Case) -> GateResult:
    """Judge the files alone; nothing is run."""
    problems = validate_bundle(case.bundle)
    evidence = [
        Evidence(label=str(problem.severity.value), result=problem.reason, files=(problem.path,))
        for problem in problems
    ]
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return failed(GATE, f"{errors[0].path}: {errors[0].reason}{more}", evidence)
    files = len(case.bundle.files)
    warnings = f", {len(problems)} warnings" if problems else ""
    return passed(GATE, f"{files} files, well-formed{warnings}", evidence, files=float(files))

"""From a shared verifier to a separate one: the outputs of a work, carried into a clean sandbox.

Foreign environments are judged where the solver worked, so that whatever it left there can lie to
the tests. Children are judged in a clean sandbox wherever that can be done: what the reference
solution leaves is found by comparing it with what an idle solver leaves, declared as artifacts,
and proved by a second oracle that is judged there. Where it cannot be done (services that have to
run, outputs outside the folders that are known), the tests stay where they were.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from evolution import execution
from evolution.bundle import Bundle, BundleError, with_config
from evolution.composition import artifacts_of, covers, with_artifacts
from evolution.gates.answers import failed, machinery_fault, passed
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from sandbox.contracts import ArtifactSpec, Outcome, SandboxFile, SolverSpec

GATE = "carrying"
MOST_OUTPUTS = 40
"""An environment that leaves more paths than this all over its folders is left as it is."""

_TOLD = re.compile(r"(?<![\w/.])(/[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)*)")
_NOT_CARRIED = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib64", "logs", "proc", "run", "sbin"),
        *("solution", "sys", "tests", "tmp", "usr", "var"),
    )
)
_NOISE = re.compile(r"(^|/)(__pycache__|\.pytest_cache|\.cache|\.venv|node_modules)(/|$)|\.pyc$")


def wants_carrying(bundle: Bundle) -> bool:
    """Whether its tests run in the solver's sandbox, without its author having asked for that."""
    config = execution.task_config(bundle)
    verifier = bundle.config.get("verifier", {})
    is_said = isinstance(verifier, dict) and "environment_mode" in verifier
    return not (config.is_separate or is_said or execution.unsupported(bundle))


def separated(bundle: Bundle, artifacts: Iterable[str]) -> Bundle:
    """The bundle with a separate verifier that receives these paths, too.

    Raises BundleError when `task.toml` cannot be edited so.
    """
    declared = list(bundle.config.get("artifacts", []))
    return with_config(
        bundle,
        {
            ("artifacts",): with_artifacts(declared, artifacts),
            ("verifier", "environment_mode"): "separate",
        },
    )


@dataclass
class Search:
    """Finds what a work leaves. `artifacts` are there when its steps have ended well."""

    case: Case
    artifacts: tuple[str, ...] = ()

    def steps(self) -> Steps:
        """Compare the reference solution with an idle solver, then judge both apart."""
        bundle = self.case.bundle
        declared = artifacts_of(bundle)
        if declared:
            found: tuple[str, ...] | str = declared
        else:
            places = known_places(bundle)
            if not places:
                return failed(GATE, "no folder is known that its work could be in")
            results = yield looks(bundle, places)
            if fault := machinery_fault(results):
                return failed(GATE, fault)
            found = outputs(results[1].state or (), results[0].state or ())
        if isinstance(found, str):
            return failed(GATE, found)
        answer = yield from self._proved(found)
        return answer

    def _proved(self, found: tuple[str, ...]) -> Steps:
        try:
            apart = separated(self.case.bundle, found)
            solvers = (execution.oracle(apart), execution.nop(apart))
            asks = [Ask(execution.trial_spec(apart, solver), solver.name) for solver in solvers]
        except BundleError as error:
            return failed(GATE, str(error))
        oracle, nop = yield tuple(asks)
        if fault := machinery_fault((oracle, nop)):
            return failed(GATE, fault)
        if oracle.outcome is not Outcome.PASS:
            return failed(GATE, f"judged apart with {', '.join(found)}, its own solution fails")
        if nop.outcome is Outcome.PASS:
            return failed(GATE, "judged apart, an idle solver passes")
        self.artifacts = found
        return passed(GATE, f"{', '.join(found)} is carried into a clean sandbox and judged there")


def known_places(bundle: Bundle) -> tuple[str, ...]:
    """Folders in which the outputs may be: the working folder, and those that are told of."""
    told = _TOLD.findall(bundle.displayed_instruction)
    tops = {f"/{path.split('/')[1]}" for path in told if path.count("/") > 1}
    places = {top for top in tops if top[1:] not in _NOT_CARRIED}
    workdir = execution.workdir_of(bundle)
    if workdir != "/" and workdir.split("/")[1] not in _NOT_CARRIED:
        places.add(workdir)
    return tuple(sorted(p for p in places if not covers(places - {p}, p)))


def looks(bundle: Bundle, places: Iterable[str]) -> tuple[Ask, Ask]:
    """The reference solution and an idle solver, after which these folders are looked at."""
    artifacts = tuple(map(ArtifactSpec, places))

    def look(solver: SolverSpec) -> Ask:
        spec = execution.trial_spec(bundle, solver, keep_state=True)
        spec = replace(spec, verifier=replace(spec.verifier, artifacts=artifacts))
        return Ask(spec, f"look-{solver.name}")

    return look(execution.oracle(bundle)), look(execution.nop(bundle))


def outputs(before: Iterable[SandboxFile], after: Iterable[SandboxFile]) -> tuple[str, ...] | str:
    """The paths that hold all that is new or changed, or one line on why there are none."""
    old, new = _by_path(before), _by_path(after)
    gone = sorted(old.keys() - new.keys())
    if gone:
        return f"its work deletes {gone[0]}, which a clean sandbox would have again"
    changed = [path for path, file in new.items() if old.get(path) != file]
    if not changed:
        return "its work leaves no file in the folders that are known"
    folders = {parent for path in old for parent in _parents(path)}
    roots = sorted({_root(path, folders) for path in changed})
    if len(roots) > MOST_OUTPUTS:
        return f"its work leaves more than {MOST_OUTPUTS} files among those that were there"
    return tuple(roots)


def _by_path(files: Iterable[SandboxFile]) -> Mapping[str, SandboxFile]:
    """The files; an empty folder, which ends with a slash, is none: what fills it is new."""
    kept = (file for file in files if not file.is_folder)
    return {file.path: file for file in kept if not _NOISE.search(file.path)}


def _parents(path: str) -> list[str]:
    found = []
    while (path := posixpath.dirname(path)) != "/":
        found.append(path)
    return found


def _root(path: str, folders: set[str]) -> str:
    """The highest folder above a path that was not there before and is not a top one, else it."""
    for parent in reversed(_parents(path)):
        if parent not in folders and parent.count("/") > 1:
            return parent
    return path

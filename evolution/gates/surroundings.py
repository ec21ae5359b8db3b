"""Other surroundings in which an environment has to come to the same, one by one.

What the bundle sets itself is left as it is, and so is what its instruction may rest on: modes of
files count only where it says nothing of them and no program works for another user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from evolution.bundle import Bundle
from evolution.gates.other_files import listed_otherwise
from evolution.gates.programs import switches_user
from sandbox.contracts import NetworkMode, NetworkPolicy, SandboxFile, TrialSpec

Change = Callable[[TrialSpec], TrialSpec]
UMASK = "another umask"
HOST = "elsewhere"
CPUS = "5"
"""How many there are said to be, to programs that ask before they share their work out."""

_SETS = re.compile(r"(?im)^\s*ENV\s+(?:.*\s)?(TZ|LC_ALL|LANG|HOME)[= ]")
_USER = re.compile(r"(?im)^\s*USER\s")
_MODES = re.compile(
    r"(?i)\b(permissions?|chmod|umask|readable|writ(e)?able|executables?|access rights"
    r"|[r-][w-][x-][r-][w-][x-][r-][w-][x-]|0?[4-7][0-7][0-7])\b"
)
"""Words by which an instruction says something about modes of files."""


def is_root(bundle: Bundle, user: str | None) -> bool:
    """Whether this user of a trial, None for the image's, is root, and the image has no other."""
    return user in (None, "root", "0") and _USER.search(_dockerfile(bundle)) is None


def changes_of(bundle: Bundle, spec: TrialSpec) -> dict[str, Change]:
    """The changes that are fair here, by name; what the bundle sets itself is left as it is."""
    own = {name.upper() for name in _SETS.findall(_dockerfile(bundle))}
    own |= {name for name, _ in (*spec.image.env, *spec.solver.env, *spec.verifier.env)}
    changes: dict[str, Change] = {}
    if "TZ" not in own:
        changes["another time zone"] = lambda s: _with_env(s, TZ="RKT-13:45")
    if not own & {"LC_ALL", "LANG"}:
        changes["another locale"] = lambda s: _with_env(s, LC_ALL="C.UTF-8", LANG="C.UTF-8")
    if "HOME" not in own:
        changes["another home"] = lambda s: _with_env(s, HOME="/var/tmp")  # noqa: S108
    if "HOSTNAME" not in own:
        changes["another host name"] = lambda s: replace(s, host_name=HOST)
    changes["another number of CPUs"] = _other_cpus
    if is_root(bundle, spec.solver.user):
        changes["another order in folders"] = listed_otherwise
    if is_root(bundle, spec.verifier.user):
        changes[UMASK] = _other_umask
    if spec.network.mode is not NetworkMode.NO_NETWORK:
        changes["no network"] = lambda s: replace(s, network=NetworkPolicy())
    return changes


def leaves_modes_open(bundle: Bundle, programs: Iterable[SandboxFile]) -> bool:
    """Whether modes of files are nobody's business here, so that none may be insisted on."""
    is_told = _MODES.search(bundle.displayed_instruction) is not None
    return not is_told and not switches_user(programs)


def _dockerfile(bundle: Bundle) -> str:
    file = bundle.by_path.get("environment/Dockerfile")
    return file.data.decode(errors="replace") if file is not None else ""


def _with_env(spec: TrialSpec, **values: str) -> TrialSpec:
    verifier = replace(spec.verifier, env=_merged(spec.verifier.env, values))
    return replace(_with_solver_env(spec, **values), verifier=verifier)


def _with_solver_env(spec: TrialSpec, **values: str) -> TrialSpec:
    return replace(spec, solver=replace(spec.solver, env=_merged(spec.solver.env, values)))


def _merged(env: tuple[tuple[str, str], ...], more: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({**dict(env), **more}.items()))


def _other_cpus(spec: TrialSpec) -> TrialSpec:
    """Another limit, and where the work is judged on another machine, other words of it, too."""
    cpus = 2.0 if (spec.limits.cpus or 2.0) < 2.0 else 1.0
    spec = replace(spec, limits=replace(spec.limits, cpus=cpus))
    if not spec.verifier.is_separate:
        return spec
    return _with_solver_env(spec, OMP_NUM_THREADS=CPUS, PYTHON_CPU_COUNT=CPUS)


def _other_umask(spec: TrialSpec) -> TrialSpec:
    command = f"umask 0027 && {_started(spec)}"
    return replace(spec, solver=replace(spec.solver, command=command))


def _started(spec: TrialSpec) -> str:
    command = spec.solver.command or "true"
    return command if " " in command else f"exec {command}"

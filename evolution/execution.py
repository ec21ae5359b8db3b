"""How a bundle is run: from `task.toml` to the sandbox's own words, as Harbor 0.26 would run it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from evolution.bundle import Bundle, BundleError
from evolution.composition import BASE_TESTS, is_composed
from evolution.config_reader import read_task_config
from evolution.harbor import included
from evolution.preambles import Preamble, recognise
from evolution.task_config import EnvironmentConfig, Severity, TaskConfig
from sandbox.contracts import (
    ArtifactSpec,
    ImageSpec,
    Limits,
    NetworkPolicy,
    SandboxFile,
    SolverSpec,
    TrialSpec,
    VerifierSpec,
)

SOLVER_CAP_SECONDS = 120.0
"""The longest solver phase of our gates, whatever a bundle asks for."""
VERIFIER_CAP_SECONDS = 120.0
"""The longest verifier phase of our gates, whatever a bundle asks for."""
ARTIFACT_FOLDER = "/logs/artifacts"
"""Harbor's convention: this folder is carried to a separate verifier even when not declared."""

_IMAGE_FILES = ("Dockerfile", "docker-compose.yaml")
_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}")
_ENTRYPOINT = re.compile(r"(?im)^\s*ENTRYPOINT\s+(.+?)\s*$")
_PLAIN_ENTRIES = frozenset({"bash", "sh", "tini", "dumb-init", "env"})
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)", re.IGNORECASE | re.MULTILINE)


def task_config(bundle: Bundle) -> TaskConfig:
    """What `task.toml` says. Raises BundleError on the first error in it."""
    config, problems = read_task_config(bundle.config)
    for problem in problems:
        if problem.severity is Severity.ERROR:
            raise BundleError(problem.path, problem.reason)
    return config


def unsupported(bundle: Bundle) -> tuple[str, ...]:
    """What this bundle needs that no sandbox here offers, one line each; empty when it can be run.

    Such a bundle is well-formed, and may be stored and exported. Raises BundleError on a broken
    `task.toml`.
    """
    config = task_config(bundle)
    found: list[str] = []
    if config.steps:
        found.append("several steps ([[steps]]) in one environment are not run yet")
    if any(
        f"{folder}/docker-compose.yaml" in bundle.by_path for folder in ("environment", "tests")
    ):
        found.append("a compose file needs several containers, which are not run yet")
    if config.environment.os != "linux":
        found.append(f'os = "{config.environment.os}" cannot be run here')
    if config.collect_count:
        found.append("[[verifier.collect]] commands are not run yet")
    if config.sidecars:
        found.append(f"artifacts of the service {config.sidecars[0]!r} need a compose file")
    if entry := _entrypoint(bundle):
        found.append(
            f"its image starts by an ENTRYPOINT of its own ({entry}), which is not run yet"
        )
    found.extend(f"[environment] {extra} is not offered" for extra in config.environment.extras)
    found.extend(_network_conflicts(config))
    for env in (config.environment.env, config.verifier_env, config.solution_env):
        try:
            resolved_env(env)
        except BundleError as error:
            found.append(error.reason)
    return tuple(found)


def _entrypoint(bundle: Bundle) -> str:
    """The program that the image would start by, unless that only starts another one."""
    dockerfile = bundle.by_path.get("environment/Dockerfile")
    text = dockerfile.data.decode(errors="replace") if dockerfile else ""
    stage = re.split(r"(?im)^\s*FROM\s", text)[-1]
    said = [line for line in _ENTRYPOINT.findall(stage) if line.strip() != "[]"]
    words = re.findall(r"[^\s\[\]\",]+", said[-1]) if said else []
    plain = not words or (posixpath.basename(words[0]) in _PLAIN_ENTRIES and len(words) < 3)
    return "" if plain else words[0]


def _network_conflicts(config: TaskConfig) -> list[str]:
    """One trial has one network policy: phases that ask for different ones are refused by name."""
    baseline = config.environment.network
    solver = config.agent_network or baseline
    own = config.verifier_environment.network if config.verifier_environment else baseline
    verifier = config.verifier_network or (own if config.is_separate else baseline)
    if solver != verifier:
        return [
            f"the solver's network is {solver.mode.value} and the verifier's"
            f" {verifier.mode.value}: two policies in one trial are not offered"
        ]
    return []


def network(bundle: Bundle) -> NetworkPolicy:
    """What of the network a trial of this bundle may reach; Harbor's default is public."""
    config = task_config(bundle)
    return config.agent_network or config.environment.network


def limits(bundle: Bundle) -> Limits:
    """The ceilings that the bundle asks for; None where it asks for nothing."""
    environment = task_config(bundle).environment
    return Limits(
        cpus=environment.cpus,
        memory_bytes=environment.memory_bytes,
        disk_bytes=environment.disk_bytes,
    )


def image_spec(bundle: Bundle) -> ImageSpec:
    """What the solver's sandbox is built from."""
    config = task_config(bundle)
    return _image(config.environment, bundle.folder("environment"), config)


def _image(
    environment: EnvironmentConfig, files: tuple[SandboxFile, ...], config: TaskConfig
) -> ImageSpec:
    return ImageSpec(
        files=files,
        docker_image=environment.docker_image,
        workdir=environment.workdir,
        env=resolved_env(environment.env),
        is_host_root_compatible=config.ratchet.get("host_root") is True,
        build_timeout_seconds=environment.build_timeout_seconds,
    )


def resolved_env(
    env: Iterable[tuple[str, str]], allowed: Mapping[str, str] | None = None
) -> tuple[tuple[str, str], ...]:
    """Environment variables with their `${NAME}` and `${NAME:-default}` templates filled in.

    Names come from `allowed` only, never from this process's own environment. Raises BundleError
    when a name without a default is not there.
    """
    known = allowed or {}
    found: list[tuple[str, str]] = []
    for name, value in env:
        match = _TEMPLATE.fullmatch(value)
        if match is None:
            found.append((name, value))
        elif match[1] in known:
            found.append((name, known[match[1]]))
        elif match[2] is not None:
            found.append((name, match[2]))
        else:
            raise BundleError("task.toml", f"{name} needs ${{{match[1]}}}, which is not passed in")
    return tuple(found)


def verifier_spec(bundle: Bundle, *, cap_seconds: float = VERIFIER_CAP_SECONDS) -> VerifierSpec:
    """How the work is judged.

    A separate verifier with an image of its own brings its tests along: then `files` is empty and
    `image` is set, and `/tests/test.sh` is the image's. Otherwise a separate verifier works in a
    fresh copy of the solver's image. Tests that begin by fetching pytest get it from the toolchain
    where that holds all that they ask for. Raises BundleError without `tests/test.sh`.
    """
    config = task_config(bundle)
    found = preamble(bundle)
    return VerifierSpec(
        files=() if has_bundled_tests(bundle, config) else _scripts(bundle, "tests", "test.sh"),
        is_separate=config.is_separate,
        artifacts=_artifacts(bundle, config) if config.is_separate else (),
        image=_verifier_image(bundle, config),
        env=resolved_env(config.verifier_env),
        user=config.verifier_user,
        timeout_seconds=min(config.verifier_timeout_seconds, cap_seconds),
        toolchain=found.use if found else None,
        remarks=_remarks(found) if found else (),
        ends_solver=not config.is_separate and config.ratchet.get("ends_processes") is True,
    )


def preamble(bundle: Bundle) -> Preamble | None:
    """What the bundle's original tests fetch before they judge; None when they fetch no pytest."""
    if has_bundled_tests(bundle, task_config(bundle)):
        return None
    script = BASE_TESTS if is_composed(bundle) else "tests/test.sh"
    return recognise(included(bundle.files, "tests"), script.removeprefix("tests/"))


def _remarks(found: Preamble) -> tuple[str, ...]:
    if found.use is not None:
        return found.remarks
    return (f"the tests fetch what they need themselves, the toolchain stays out: {found.refusal}",)


def _verifier_image(bundle: Bundle, config: TaskConfig) -> ImageSpec | None:
    """A separate verifier's image where it differs from the solver's; Harbor's order of choice."""
    if not config.is_separate:
        return None
    own = config.verifier_environment
    base = own or config.environment
    if own is not None and own.docker_image:
        return _image(own, bundle.folder("tests"), config)
    if any(f"tests/{name}" in bundle.by_path for name in _IMAGE_FILES):
        return _image(replace(base, docker_image=None), bundle.folder("tests"), config)
    if own is None:
        return None
    fresh = replace(own, docker_image=config.environment.docker_image)
    image = _image(fresh, bundle.folder("environment"), config)
    return None if image == image_spec(bundle) else image


def has_bundled_tests(bundle: Bundle, config: TaskConfig) -> bool:
    """Whether a separate verifier's own image holds the tests, so that none are copied in."""
    own = config.verifier_environment
    return config.is_separate and (
        (own is not None and own.docker_image is not None)
        or any(f"tests/{name}" in bundle.by_path for name in _IMAGE_FILES)
    )


def _artifacts(bundle: Bundle, config: TaskConfig) -> tuple[ArtifactSpec, ...]:
    """The declared artifacts at absolute paths, the conventional folder first unless declared."""
    workdir = workdir_of(bundle)
    declared = tuple(
        replace(artifact, source=posixpath.normpath(posixpath.join(workdir, artifact.source)))
        for artifact in config.artifacts
    )
    if any(artifact.source == ARTIFACT_FOLDER for artifact in declared):
        return declared
    return (ArtifactSpec(ARTIFACT_FOLDER), *declared)


def workdir_of(bundle: Bundle) -> str:
    """The folder in which commands run, as far as the bundle's own files tell; "/" otherwise."""
    said = task_config(bundle).environment.workdir
    if said:
        return said
    dockerfile = bundle.by_path.get("environment/Dockerfile")
    found = _WORKDIR.findall(dockerfile.data.decode(errors="replace")) if dockerfile else []
    place = "/"
    for step in found:
        place = posixpath.normpath(posixpath.join(place, step.strip("\"'")))
    return place


def _scripts(bundle: Bundle, folder: str, script: str) -> tuple[SandboxFile, ...]:
    """What Harbor uploads of a folder, its entry script made executable as Harbor does."""
    if f"{folder}/{script}" not in bundle.by_path:
        raise BundleError(f"{folder}/{script}", "missing")
    files = included(bundle.files, folder)
    if all(file.path != script for file in files):
        raise BundleError(f"{folder}/{script}", "excluded by .harborignore")
    return tuple(
        replace(file, mode=file.mode | 0o111) if file.path == script else file for file in files
    )


def oracle(bundle: Bundle, *, cap_seconds: float = SOLVER_CAP_SECONDS) -> SolverSpec:
    """The solver that runs the reference solution. Raises BundleError when there is none."""
    return solution_solver(
        bundle, "oracle", _scripts(bundle, "solution", "solve.sh"), cap_seconds=cap_seconds
    )


def solution_solver(
    bundle: Bundle,
    name: str,
    files: Iterable[SandboxFile],
    *,
    cap_seconds: float = SOLVER_CAP_SECONDS,
) -> SolverSpec:
    """A solver that runs these files (paths below `solution/`) the way the oracle is run."""
    config = task_config(bundle)
    env = {"DEBIAN_FRONTEND": "noninteractive", **dict(resolved_env(config.solution_env))}
    executable = tuple(
        replace(file, mode=file.mode | 0o111) if file.path == "solve.sh" else file for file in files
    )
    return SolverSpec(
        name=name,
        files=executable,
        command="/solution/solve.sh",
        env=tuple(sorted(env.items())),
        user=config.agent_user,
        timeout_seconds=min(config.agent_timeout_seconds or cap_seconds, cap_seconds),
    )


def nop(bundle: Bundle, *, cap_seconds: float = SOLVER_CAP_SECONDS) -> SolverSpec:
    """The solver that does nothing."""
    config = task_config(bundle)
    seconds = min(config.agent_timeout_seconds or cap_seconds, cap_seconds)
    return SolverSpec(name="nop", user=config.agent_user, timeout_seconds=seconds)


def trial_spec(
    bundle: Bundle,
    solver: SolverSpec,
    *,
    verifier_cap_seconds: float = VERIFIER_CAP_SECONDS,
    state: tuple[SandboxFile, ...] | None = None,
    is_traced: bool = False,
    keep_state: bool = False,
) -> TrialSpec:
    """One trial of this bundle by this solver.

    Raises BundleError when the bundle is broken, or needs what no sandbox here offers.
    """
    missing = unsupported(bundle)
    if missing:
        raise BundleError("task.toml", missing[0])
    return TrialSpec(
        image=image_spec(bundle),
        solver=solver,
        verifier=verifier_spec(bundle, cap_seconds=verifier_cap_seconds),
        limits=limits(bundle),
        network=network(bundle),
        state=state,
        is_traced=is_traced,
        keep_state=keep_state,
    )

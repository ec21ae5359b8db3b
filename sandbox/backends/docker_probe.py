"""What a Docker engine offers for sandboxes, in plain findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from docker.errors import ImageNotFound

from sandbox.backends.docker_engine import Engine, engine_errors, one_line
from sandbox.errors import SandboxError
from sandbox.findings import Finding

_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "CPUs"}


def probe(
    *, url: str | None = None, runtime: str | None = None, bases: Sequence[str] = ()
) -> tuple[Finding, ...]:
    """What was found, the engine first; only that when it does not answer. Never raises.

    `runtime` is the one that is configured, `bases` are images that bundles are built from.
    """
    try:
        engine = Engine(url, timeout_seconds=5)
    except SandboxError as error:
        return (Finding("engine", False, one_line(error), "start one, or set DOCKER_HOST"),)
    try:
        with engine_errors("say what it is"):
            info: dict[str, Any] = engine.api.info()
            missing = [name for name in bases if not _has_image(engine, name)]
    except SandboxError as error:
        return (Finding("engine", False, one_line(error), "start one, or set DOCKER_HOST"),)
    finally:
        engine.close()
    return (_engine(info), _limits(info), _runtime(info, runtime), *_bases(bases, missing), *NOTES)


NOTES = (
    Finding("disk", True, "watched, not by quota"),
    Finding("builder", True, "classic: Dockerfiles that need BuildKit are refused by name"),
)


def _has_image(engine: Engine, name: str) -> bool:
    try:
        engine.api.inspect_image(name)
    except ImageNotFound:
        return False
    return True


def _engine(info: dict[str, Any]) -> Finding:
    version = one_line(info.get("ServerVersion") or "of unknown version", 40)
    driver = one_line(info.get("Driver") or "unknown", 40)
    return Finding(
        "engine",
        True,
        f"{version}, {driver}, cgroup v{one_line(info.get('CgroupVersion', '?'), 4)}",
    )


def _limits(info: dict[str, Any]) -> Finding:
    lacking = [name for key, name in _LIMITS.items() if info.get(key) is False]
    if not any("seccomp" in str(option) for option in info.get("SecurityOptions") or ()):
        lacking.append("system calls (seccomp)")
    if lacking:
        remedy = "give the engine these control groups, and a kernel with seccomp"
        return Finding("limits", False, f"not enforced: {', '.join(lacking)}", remedy)
    return Finding("limits", True, "memory, processes, CPUs and system calls")


def _runtime(info: dict[str, Any], wanted: str | None) -> Finding:
    known = sorted(info.get("Runtimes") or {})
    name = wanted or info.get("DefaultRuntime") or "runc"
    if wanted is not None and wanted not in known:
        remedy = f"install it in the engine, or set another (there are: {', '.join(known)})"
        return Finding("runtime", False, f"{one_line(wanted, 40)!r} is not there", remedy)
    return Finding("runtime", True, one_line(name, 40))


def _bases(bases: Sequence[str], missing: Sequence[str]) -> tuple[Finding, ...]:
    if missing:
        names = ", ".join(missing)
        remedy = f"docker pull {missing[0]}; otherwise the first build fetches it"
        return (Finding("base image", False, f"{names} is not here yet", remedy),)
    return (Finding("base image", True, f"{', '.join(bases)} is here"),) if bases else ()

"""Reads `task.toml` key by key, by Harbor 0.26's rules, and says what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from evolution.task_config import EnvironmentConfig, Problem, Severity, TaskConfig
from sandbox.contracts import ArtifactSpec, NetworkMode, NetworkPolicy

MIB = 1024 * 1024
_LARGEST = 100_000_000.0
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([GMK])\s*$", re.IGNORECASE)
_SIZE_IN_MIB = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}
TASK_NAME = re.compile(r"^[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*\Z")
_HOST = re.compile(r"^(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.:/-]*[A-Za-z0-9])?\.?\Z")

_KNOWN = {
    "": "schema_version version source multi_step_reward_strategy artifacts task metadata agent "
    "verifier solution environment steps",
    "task": "name version description authors keywords",
    "agent": "timeout_sec user network_mode allowed_hosts",
    "verifier": "timeout_sec env user environment_mode environment collect network_mode "
    "allowed_hosts",
    "solution": "env",
    "environment": "network_mode allowed_hosts allow_internet build_timeout_sec docker_image os "
    "cpus memory_mb storage_mb memory storage gpus gpu_types tpu mcp_servers env skills_dir "
    "healthcheck workdir",
}


def read_task_config(config: Mapping[str, Any]) -> tuple[TaskConfig, tuple[Problem, ...]]:
    """Read a parsed `task.toml`. Wrong values are reported and read as if they were not there."""
    reader = _Reader()
    return reader.whole(config), tuple(reader.problems)


class _Reader:
    """Reads tables key by key and remembers what was wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def _say(self, where: str, reason: str, severity: Severity = Severity.ERROR) -> None:
        self.problems.append(Problem("task.toml", f"{where}: {reason}", severity))

    def _table(self, parent: Mapping[str, Any], key: str, kind: str, at: str) -> Mapping[str, Any]:
        value = parent.get(key, {})
        if not isinstance(value, dict):
            self._say(at, "must be a table")
            return {}
        self._unknown(value, kind, at)
        return value

    def _unknown(self, table: Mapping[str, Any], kind: str, at: str) -> None:
        for key in table:
            if key not in _KNOWN[kind].split():
                where = f"{at}.{key}" if at else key
                self._say(where, "unknown key, kept but ignored", Severity.WARNING)

    def whole(self, config: Mapping[str, Any]) -> TaskConfig:
        self._unknown(config, "", "")
        for key in ("schema_version", "version"):
            self._text(config, key, key)
        metadata = config.get("metadata", {})
        if not isinstance(metadata, dict):
            self._say("metadata", "must be a table")
            metadata = {}
        agent = self._table(config, "agent", "agent", "agent")
        verifier = self._table(config, "verifier", "verifier", "verifier")
        own = self._verifier_environment(verifier)
        artifacts, sidecars = self._artifacts(config)
        collect = verifier.get("collect", [])
        return TaskConfig(
            name=self._name(config),
            environment=self._environment(config, "environment"),
            agent_timeout_seconds=self._number(agent, "timeout_sec", "agent.timeout_sec"),
            agent_user=self._user(agent, "agent.user"),
            agent_network=self._network(agent, "agent"),
            verifier_timeout_seconds=self._number(verifier, "timeout_sec", "verifier.timeout_sec")
            or 600.0,
            verifier_user=self._user(verifier, "verifier.user"),
            verifier_env=self._env(verifier, "verifier.env"),
            verifier_network=self._network(verifier, "verifier"),
            verifier_environment=own,
            is_separate=self._is_separate(verifier, own),
            collect_count=len(collect) if isinstance(collect, list) else 0,
            solution_env=self._env(
                self._table(config, "solution", "solution", "solution"), "solution.env"
            ),
            artifacts=artifacts,
            sidecars=sidecars,
            steps=self._steps(config),
            metadata=metadata,
        )

    def _name(self, config: Mapping[str, Any]) -> str:
        task = self._table(config, "task", "task", "task")
        if not task:
            return ""
        name = self._text(task, "name", "task.name") or ""
        if not TASK_NAME.match(name) or ".." in name:
            self._say("task.name", f"{name!r} is not of the form organisation/name")
        for key in ("version", "description"):
            self._text(task, key, f"task.{key}")
        self._strings(task, "keywords", "task.keywords")
        authors = task.get("authors", [])
        if not isinstance(authors, list) or not all(
            isinstance(a, dict) and isinstance(a.get("name"), str) for a in authors
        ):
            self._say("task.authors", "must be a list of tables with a name")
        return name

    def _verifier_environment(self, verifier: Mapping[str, Any]) -> EnvironmentConfig | None:
        if "environment" not in verifier:
            return None
        return self._environment(verifier, "verifier.environment")

    def _is_separate(self, verifier: Mapping[str, Any], own: EnvironmentConfig | None) -> bool:
        mode = self._choice(
            verifier, "environment_mode", "verifier.environment_mode", ("shared", "separate")
        )
        if mode == "shared" and own is not None:
            self._say("verifier", 'environment_mode = "shared" contradicts [verifier.environment]')
        return mode == "separate" or (mode is None and own is not None)

    def _environment(self, parent: Mapping[str, Any], at: str) -> EnvironmentConfig:
        table = self._table(parent, "environment", "environment", at)
        extras = ("gpus", "tpu", "mcp_servers", "healthcheck", "skills_dir")
        return EnvironmentConfig(
            docker_image=self._text(table, "docker_image", f"{at}.docker_image") or None,
            workdir=self._text(table, "workdir", f"{at}.workdir") or None,
            env=self._env(table, f"{at}.env"),
            network=self._baseline(table, at),
            build_timeout_seconds=self._number(
                table, "build_timeout_sec", f"{at}.build_timeout_sec"
            )
            or 600.0,
            cpus=self._number(table, "cpus", f"{at}.cpus"),
            memory_bytes=self._size(table, "memory_mb", "memory", at),
            disk_bytes=self._size(table, "storage_mb", "storage", at),
            os=self._os(table, at),
            extras=tuple(key for key in extras if table.get(key)),
        )

    def _os(self, table: Mapping[str, Any], at: str) -> str:
        value = table.get("os", "linux")
        lowered = value.lower() if isinstance(value, str) else value
        return self._choice({"os": lowered}, "os", f"{at}.os", ("linux", "windows")) or "linux"

    def _baseline(self, table: Mapping[str, Any], at: str) -> NetworkPolicy:
        said = self._network(table, at)
        if said is not None:
            return said
        internet = table.get("allow_internet")
        if internet is not None and not isinstance(internet, bool):
            self._say(f"{at}.allow_internet", "must be true or false")
        return NetworkPolicy(NetworkMode.NO_NETWORK if internet is False else NetworkMode.PUBLIC)

    def _network(self, table: Mapping[str, Any], at: str) -> NetworkPolicy | None:
        modes = tuple(mode.value for mode in NetworkMode)
        mode = self._choice(table, "network_mode", f"{at}.network_mode", modes)
        hosts = self._strings(table, "allowed_hosts", f"{at}.allowed_hosts")
        for host in hosts:
            if not _HOST.match(host):
                self._say(f"{at}.allowed_hosts", f"{host!r} is no host name or address")
        if "allowed_hosts" in table and (hosts or mode is None) and mode != "allowlist":
            self._say(f"{at}.allowed_hosts", 'needs network_mode = "allowlist"')
        if mode is None:
            return None
        folded = tuple(host.lower().rstrip(".") for host in hosts)
        return NetworkPolicy(NetworkMode(mode), folded if mode == "allowlist" else ())

    def _artifacts(
        self, config: Mapping[str, Any]
    ) -> tuple[tuple[ArtifactSpec, ...], tuple[str, ...]]:
        entries = config.get("artifacts", [])
        if not isinstance(entries, list):
            self._say("artifacts", "must be a list")
            return (), ()
        found: list[ArtifactSpec] = []
        sidecars: list[str] = []
        for number, entry in enumerate(entries):
            at = f"artifacts[{number}]"
            table = {"source": entry} if isinstance(entry, str) else entry
            source = table.get("source") if isinstance(table, dict) else None
            if not isinstance(source, str) or not source or ".." in source.split("/"):
                self._say(at, "needs a source path without '..'")
                continue
            service = self._text(table, "service", f"{at}.service")
            if service not in (None, "main"):
                sidecars.append(service or "")
                continue
            found.append(ArtifactSpec(source, self._strings(table, "exclude", f"{at}.exclude")))
        return tuple(found), tuple(sidecars)

    def _steps(self, config: Mapping[str, Any]) -> tuple[str, ...]:
        steps = config.get("steps", [])
        names = (
            [s.get("name") for s in steps if isinstance(s, dict)]
            if isinstance(steps, list)
            else [None]
        )
        good = tuple(name for name in names if isinstance(name, str) and name)
        if len(good) != len(names) or (isinstance(steps, list) and len(steps) != len(names)):
            self._say("steps", "must be tables with a name")
        if len({name.casefold() for name in good}) != len(good):
            self._say("steps", "names must differ")
        return good

    def _text(self, table: Mapping[str, Any], key: str, at: str) -> str | None:
        value = table.get(key)
        if value is None or isinstance(value, str):
            return value
        self._say(at, "must be a string")
        return None

    def _choice(
        self, table: Mapping[str, Any], key: str, at: str, choices: tuple[str, ...]
    ) -> str | None:
        value = table.get(key)
        if value is None or value in choices:
            return value
        self._say(at, f"{value!r} is none of {', '.join(choices)}")
        return None

    def _strings(self, table: Mapping[str, Any], key: str, at: str) -> tuple[str, ...]:
        value = table.get(key)
        if value is None:
            return ()
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._say(at, "must be a list of strings")
        return ()

    def _user(self, table: Mapping[str, Any], at: str) -> str | None:
        value = table.get("user")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            self._say(at, "must be a user name or number")
            return None
        return str(value)

    def _env(self, table: Mapping[str, Any], at: str) -> tuple[tuple[str, str], ...]:
        value = table.get("env", {})
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            self._say(at, "must be a table of strings")
            return ()
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                self._say(at, f"{name!r} cannot be an environment variable")
                return ()
        return tuple(value.items())

    def _number(self, table: Mapping[str, Any], key: str, at: str) -> float | None:
        """A positive, finite number."""
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._say(at, "must be a number")
        elif not math.isfinite(value) or value <= 0:
            self._say(at, f"{value} is not a positive number")
        elif value > _LARGEST:
            self._say(at, f"{value} is out of all proportion")
        else:
            return float(value)
        return None

    def _size(self, table: Mapping[str, Any], key: str, legacy: str, at: str) -> int | None:
        """A size in bytes, from MiB or from the old way of writing it ("2G")."""
        if key in table:
            number = self._number({key: table[key]}, key, f"{at}.{key}")
            return None if number is None else int(number * MIB)
        value = table.get(legacy)
        if value is None:
            return None
        match = _SIZE.match(value) if isinstance(value, str) else None
        if match is None:
            self._say(f"{at}.{legacy}", f"{value!r} is no size, ignored", Severity.WARNING)
            return None
        return int(float(match[1]) * _SIZE_IN_MIB[match[2].upper()] * MIB)

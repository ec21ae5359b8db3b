"""What a search for environments answers: a bundle, or a refusal with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evolution.bundle import Bundle, BundleError
from evolution.plain_text import plain
from evolution.task_config import Problem, Severity
from evolution.validation import validate_bundle
from sandbox.contracts import SandboxFile

_TERMINAL_BENCH_1 = (
    "Terminal-Bench 1 layout (task.yaml) is not read yet:"
    " convert it with `harbor task migrate`, then import the result"
)
_NO_CONFIG = "no task.toml: not an environment in Harbor's layout"
NOTHING_HERE = "no environment found in here (no task.toml in it or below)"
_MARKS = ("instruction.md", "environment", "solution", "tests")
PASSED_OVER = (".git", "__MACOSX", "__pycache__")
"""Names that a search passes over without a word: no environment is ever kept in there."""
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst")


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle that can be taken in. `origin` says where it was, for people; `name` is its own.

    `warnings` are what is worth saying about it; it is taken all the same.
    """

    origin: str
    name: str
    bundle: Bundle
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that was not taken: where, which file in it, and the reason in one line.

    `origin` is the environment, folder or archive; `file` the path in it, empty for all of it.
    """

    origin: str
    file: str
    reason: str

    @property
    def path(self) -> str:
        """The whole place, for people."""
        return plain(self.origin if self.file in ("", ".") else f"{self.origin}: {self.file}")

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.path}: {plain(self.reason)}"


Found = FoundBundle | Refusal


def folder_verdict(names: Iterable[str]) -> str:
    """What a folder with these names is: "bundle", a reason to refuse it, or "" to look deeper."""
    names = set(names)
    if "task.toml" in names:
        return "bundle"
    if "task.yaml" in names or "task.yml" in names:
        return _TERMINAL_BENCH_1
    if len(names.intersection(_MARKS)) >= 2:
        return _NO_CONFIG
    return ""


def judged(
    origin: str, name: str, files: tuple[SandboxFile, ...], notes: tuple[Problem, ...] = ()
) -> Found:
    try:
        bundle = Bundle.of(files)
        problems = validate_bundle(bundle)
        own = bundle.config.get("task", {}) if not _errors(problems) else {}
    except BundleError as error:
        return Refusal(origin, error.path, error.reason)
    errors = _errors(problems)
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return Refusal(origin, errors[0].path, errors[0].reason + more)
    return FoundBundle(origin, plain(str(own.get("name") or name)), bundle, (*notes, *problems))


def _errors(problems: tuple[Problem, ...]) -> list[Problem]:
    return [problem for problem in problems if problem.severity is Severity.ERROR]


def shown(path: Path) -> str:
    """A path for people, whatever bytes are in it."""
    return str(path).encode(errors="backslashreplace").decode()


def os_reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is nothing at this path"
    return str(getattr(error, "strerror", None) or error)

"""What a solver must not find: the reference solution's programs, and the tests that judge.

A file counts as found when its telling lines (no blank ones, no comments) stand in another file,
all of them, one after another. That a repaired program shares many lines with the broken one is
how repairs are; so parts do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile

FEWEST_CHARACTERS = 60
"""Shorter programs say too little to be recognised."""
_PROGRAM = re.compile(r"\.(sh|bash|py|pl|rb|js|awk|sed|c|go|rs)$")
_JUDGE = re.compile(r"/logs/verifier|\bassert\b|^\s*def (test|check)_|\breward\b", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n(.*?)^\s*\2[ \t]*$", re.MULTILINE | re.DOTALL)
_NAMES = re.compile(r"(?m)^\s*(?:async )?def (\w{6,})")
_ANSWER_LIKE = re.compile(
    r"(?i)(^|[/._-])(expected|answers?|solutions?|solve|golden|ground.?truth|oracle)([/._-]|$)"
)
_FEWEST_NAMES = 3
_DOCUMENT = re.compile(r"(?i)(^|/)(readme[^/]*|[^/]*\.(md|rst))$")
_VARIABLES = re.compile(r"(?im)^\s*(?:ENV|LABEL|ARG)\s+((?:.*\\\n)*.*)$")
_PAIR = re.compile(r"([\w.-]+)[= ](\"[^\"]*\"|'[^']*'|\S+)")


@dataclass(frozen=True, slots=True)
class Secret:
    """A file that must stay unknown. `core` are its telling lines; `names` its functions."""

    path: str
    core: str
    names: tuple[str, ...]
    data: bytes


def core_of(text: str) -> str:
    """The telling lines of a text: stripped, without blank ones and comments."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and line[0] != "#")


def secrets_of(bundle: Bundle) -> tuple[Secret, ...]:
    """The programs of the solution and those that it writes, and the tests that judge.

    What the solution writes is no secret where the solver is given it openly: a file to be put in
    place as it is.
    """
    found: list[Secret] = []
    open_texts = [core_of(bundle.instruction)]
    open_texts += [core_of(_text(f) or "") for f in bundle.folder("environment")]
    for file in bundle.folder("solution"):
        text = _text(file)
        if text is not None and is_program(file, text):
            found += _secret(f"solution/{file.path}", text, file.data)
            for match in _HEREDOC.finditer(text):
                core = core_of(match[3])
                if not any(core in one for one in open_texts):
                    found += _secret(f"solution/{file.path} (a part)", match[3], match[3].encode())
    for file in bundle.folder("tests"):
        text = _text(file)
        if text is not None and is_program(file, text) and _JUDGE.search(text):
            found += _secret(f"tests/{file.path}", text, file.data)
    return tuple(found)


def _secret(path: str, text: str, data: bytes) -> Iterator[Secret]:
    core = core_of(text)
    if len(core) >= FEWEST_CHARACTERS and "\n" in core:
        yield Secret(path, core, tuple(sorted(set(_NAMES.findall(text)))), data)


def is_program(file: SandboxFile, text: str) -> bool:
    """Whether a file is a script or a source, by its name or its first line."""
    return bool(_PROGRAM.search(file.path)) or text.startswith("#!")


def answers_of(bundle: Bundle) -> tuple[SandboxFile, ...]:
    """Data that the tests compare with, by files of some size that are no programs."""
    return tuple(
        file
        for file in bundle.folder("tests")
        if file.link is None
        and len(file.data.strip()) >= FEWEST_CHARACTERS
        and not is_program(file, _text(file) or "")
    )


def is_answer_like(place: str) -> bool:
    """Whether a name announces an answer."""
    return _ANSWER_LIKE.search(place) is not None


def is_compiled(secret: Secret, data: bytes) -> bool:
    """Whether compiled Python holds the functions of this file."""
    names = secret.names
    if len(names) < _FEWEST_NAMES:
        return False
    return sum(name.encode() in data for name in names) >= 0.9 * len(names)


def shared_files(bundle: Bundle) -> frozenset[bytes]:
    """Contents that the solver is told of by name, in the instruction or in a document beside it.

    A project's own tests, or a fixture that the tests keep a copy of, are given, not leaked.
    """
    files = [f for f in bundle.folder("environment") if f.link is None]
    told = "\n".join(
        [bundle.instruction, *(_text(f) or "" for f in files if _DOCUMENT.search(f.path))]
    )
    words = frozenset(re.split(r"[^\w.+-]+", told)) | {word.rstrip(".") for word in told.split()}
    return frozenset(file.data for file in files if file.path.rsplit("/", 1)[-1] in words)


def variables_of(bundle: Bundle) -> tuple[tuple[str, str], ...]:
    """Variables and labels with a name that announces an answer, and their values."""
    dockerfile = bundle.by_path.get("environment/Dockerfile")
    text = (_text(dockerfile) or "") if dockerfile is not None else ""
    said = [pair for line in _VARIABLES.findall(text) for pair in _PAIR.findall(line)]
    environment = bundle.config.get("environment", {})
    env = environment.get("env", {}) if isinstance(environment, dict) else {}
    pairs = [(name, value.strip("\"'")) for name, value in said]
    pairs += [(str(k), str(v)) for k, v in env.items()] if isinstance(env, dict) else []
    return tuple((name, value) for name, value in pairs if is_answer_like(name) and len(value) > 3)


def _text(file: SandboxFile) -> str | None:
    if file.link is not None or b"\0" in file.data:
        return None
    return file.data.decode("utf-8", "replace")

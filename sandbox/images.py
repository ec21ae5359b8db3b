"""Dockerfiles: the documented subset that can be built without Docker, read into plain steps.

FROM, WORKDIR, COPY, ADD of local files, RUN, ENV, ARG, USER, SHELL; LABEL, EXPOSE and CMD are
accepted and have no effect, since a sandbox runs its own command. Comments, line continuations
and here-documents are understood. Everything else raises Refused, naming Docker as the way.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.errors import ImageBuildFailed, Refused

_WITHOUT_EFFECT = frozenset(("LABEL", "EXPOSE", "CMD", "MAINTAINER"))
_KNOWN = frozenset(("FROM", "WORKDIR", "COPY", "ADD", "RUN", "ENV", "ARG", "USER", "SHELL"))
_HEREDOC = re.compile(r"<<-?\s*([\"']?)([A-Za-z_][A-Za-z0-9_]*)\1")
_VARIABLE = re.compile(
    r"\\(?P<escaped>.)|\$(?:(?P<bare>[A-Za-z_][A-Za-z0-9_]*)"
    r"|\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?::(?P<operator>[-+])(?P<word>[^}]*))?\})"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its keyword, its flags (`--chown=…`), its text, its here-documents."""

    keyword: str
    text: str
    line: int
    flags: tuple[tuple[str, str], ...] = ()
    heredocs: tuple[tuple[str, bytes], ...] = ()

    @property
    def where(self) -> str:
        """For messages: the line and the instruction, shortened."""
        return f"Dockerfile line {self.line}: {self.keyword} {self.text}"[:160]

    def as_list(self) -> tuple[str, ...] | None:
        """The JSON form, or None when the text is not written so."""
        if not self.text.startswith("["):
            return None
        try:
            value = json.loads(self.text)
        except ValueError:
            return None
        is_list = isinstance(value, list) and all(isinstance(word, str) for word in value)
        return tuple(value) if is_list else None


def parse_dockerfile(data: bytes) -> tuple[Step, ...]:
    """Read a Dockerfile. Raises ImageBuildFailed when it is broken, Refused when unsupported."""
    try:
        lines = data.decode().lstrip("\ufeff").splitlines()
    except UnicodeDecodeError as error:
        raise ImageBuildFailed(f"Dockerfile: not UTF-8 (byte {error.start})") from None
    steps: list[Step] = []
    index = 0
    while index < len(lines):
        line = lines[index].strip()
        if not line or line.startswith("#"):
            if re.match(r"#\s*escape\s*=\s*`", line, re.IGNORECASE):
                raise Refused("Dockerfile: the escape directive needs Docker")
            index += 1
            continue
        number = index + 1
        text, index = _logical_line(lines, index)
        if not text:
            continue
        heredocs, index = _heredocs(lines, index, text)
        steps.append(_step(text, number, heredocs))
    if not any(step.keyword == "FROM" for step in steps):
        raise ImageBuildFailed("Dockerfile: there is no FROM")
    if sum(step.keyword == "FROM" for step in steps) > 1:
        raise Refused("Dockerfile: several stages (FROM) need Docker")
    first = next(step for step in steps if step.keyword != "ARG")
    if first.keyword != "FROM":
        raise ImageBuildFailed(f"{first.where}: comes before FROM")
    return tuple(steps)


def _logical_line(lines: list[str], index: int) -> tuple[str, int]:
    parts: list[str] = []
    while index < len(lines):
        line = lines[index]
        index += 1
        if parts and (not line.strip() or line.lstrip().startswith("#")):
            continue  # Docker drops these between continued lines
        stripped = line.rstrip()
        if not stripped.endswith("\\"):
            parts.append(stripped)
            break
        parts.append(stripped[:-1])
    return "".join(parts).strip(), index


def _heredocs(lines: list[str], index: int, text: str) -> tuple[tuple[tuple[str, bytes], ...], int]:
    if text.split(None, 1)[0].upper() not in ("RUN", "COPY", "ADD"):
        return (), index
    found: list[tuple[str, bytes]] = []
    for match in _HEREDOC.finditer(text):
        body: list[str] = []
        is_stripped = match.group(0).startswith("<<-")
        while index < len(lines):
            line = lines[index].lstrip("\t") if is_stripped else lines[index]
            index += 1
            if line == match.group(2):
                break
            body.append(line + "\n")
        else:
            raise ImageBuildFailed(f"Dockerfile: the here-document {match.group(2)} does not end")
        found.append((match.group(0), "".join(body).encode()))
    return tuple(found), index


def _step(text: str, number: int, heredocs: tuple[tuple[str, bytes], ...]) -> Step:
    keyword, _space, rest = text.partition(" ")
    keyword = keyword.upper()
    rest = rest.strip()
    if keyword not in _KNOWN | _WITHOUT_EFFECT:
        raise Refused(f"Dockerfile line {number}: {keyword[:40]} needs Docker")
    if not rest:
        raise ImageBuildFailed(f"Dockerfile line {number}: {keyword} without an argument")
    flags: list[tuple[str, str]] = []
    if keyword in ("COPY", "ADD", "RUN", "FROM"):
        while match := re.match(r"--([a-z-]+)(?:=(\S*))?\s+", rest):
            flags.append((match.group(1), match.group(2) or ""))
            rest = rest[match.end() :]
    allowed = {"COPY": {"chown", "chmod"}, "ADD": {"chown", "chmod"}, "FROM": {"platform"}}
    for name, _value in flags:
        if name not in allowed.get(keyword, set()):
            raise Refused(f"Dockerfile line {number}: {keyword} --{name} needs Docker")
    return Step(keyword, rest, number, tuple(flags), heredocs)


def has_effect(step: Step) -> bool:
    """Whether a step changes anything in a sandbox."""
    return step.keyword not in _WITHOUT_EFFECT and step.keyword != "FROM"


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$NAME`, `${NAME}`, `${NAME:-word}` and `${NAME:+word}` as a Dockerfile does."""

    def value(match: re.Match[str]) -> str:
        if match["escaped"] is not None:
            return match["escaped"] if match["escaped"] in "$\\" else match[0]
        name = match["bare"] or match["braced"]
        known = variables.get(name, "")
        if match["operator"] == "-":
            return known or expand(match["word"], variables)
        if match["operator"] == "+":
            return expand(match["word"], variables) if known else ""
        return known

    return _VARIABLE.sub(value, text)


def words(step: Step) -> list[str]:
    """Split a step's text into words, quotes removed. Raises ImageBuildFailed."""
    try:
        lexer = shlex.shlex(step.text, posix=True, punctuation_chars=False)
        lexer.whitespace_split = True
        lexer.commenters = ""
        lexer.escape = ""
        return list(lexer)
    except ValueError as error:
        raise ImageBuildFailed(f"{step.where}: {error}") from None


def pairs(step: Step, variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """The variables that an ENV or ARG step sets. `ARG NAME` yields an empty value."""
    parts = words(step)
    if step.keyword == "ENV" and parts and "=" not in parts[0]:
        name, _space, value = step.text.partition(" ")
        return [(name, expand(value.strip(), variables))]
    found: list[tuple[str, str]] = []
    for part in parts:
        name, equals, value = part.partition("=")
        if step.keyword == "ENV" and not equals:
            raise ImageBuildFailed(f"{step.where}: {part!r} is no NAME=value")
        found.append((name, expand(value, variables)))
    return found


_APT_COMMAND = re.compile(
    r"^(?:[A-Z_]+=\S+\s+)*apt(?:-get)?(?:\s+-\S+)*\s+(update|install|clean|autoclean|autoremove)\b(.*)$"
)
_CLEAN_COMMAND = re.compile(r"^(?:rm\s+-[rf]+(?:\s+/var/(?:lib/apt|cache)/\S+)+|set\s+-\S+)$")


def apt_packages(step: Step) -> tuple[str, ...] | None:
    """The packages of a RUN made of nothing but apt-get and its cleaning; None for any other."""
    if step.keyword != "RUN" or step.heredocs or "apt" not in step.text:
        return None
    found: list[str] = []
    for command in re.split(r"&&|;|\n", step.text):
        text = " ".join(command.split())
        if not text or _CLEAN_COMMAND.match(text):
            continue
        match = _APT_COMMAND.match(text)
        if match is None:
            return None
        if match.group(1) == "install":
            rest = match.group(2).split()
            if any(not re.fullmatch(r"-\S+|[a-z0-9][a-z0-9.+=:~-]*", word) for word in rest):
                return None
            found += [word for word in rest if not word.startswith("-")]
    return tuple(found)

"""Reading and editing the part of a Dockerfile that brings files into the image."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

_CONTINUES = re.compile(r"\\\s*$")
_HEREDOC = re.compile(r"<<-?\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)[\"']?")
_MKDIR = re.compile(r"(?:^|&&|;)\s*mkdir\s+([^&;|]+)")
_TOP_FOLDERS = ("bin", "etc", "home", "media", "mnt", "opt", "root", "srv", "tmp", "usr", "var")
_CLOSING = frozenset({"CMD", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL"})


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word in upper case, its arguments in one line, its lines."""

    word: str
    arguments: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Copied:
    """A file of the build context with the path at which the image has it."""

    context: str
    target: str
    instruction: int
    """Index of the instruction that copies it."""


def parse(text: str) -> tuple[Instruction, ...]:
    """The instructions of a Dockerfile, comments left out; heredoc bodies belong to their word."""
    lines = text.splitlines()
    found: list[Instruction] = []
    at = 0
    while at < len(lines):
        first = at
        if not lines[at].strip() or lines[at].lstrip().startswith("#"):
            at += 1
            continue
        parts = [lines[at]]
        while _CONTINUES.search(parts[-1]) and at + 1 < len(lines):
            parts[-1] = _CONTINUES.sub(" ", parts[-1])
            at += 1
            while at + 1 < len(lines) and lines[at].lstrip().startswith("#"):
                at += 1
            parts.append(lines[at])
        at += 1
        joined = "".join(parts).strip()
        word, _, rest = joined.partition(" ")
        for mark in _HEREDOC.findall(rest) if word.upper() in {"RUN", "COPY", "ADD"} else ():
            while at < len(lines) and lines[at].strip() != mark:
                at += 1
            at += 1
        found.append(Instruction(word.upper(), rest.strip(), first, min(at, len(lines))))
    return tuple(found)


def last_stage(instructions: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """The instructions from the last FROM on: those that make the final image."""
    starts = [at for at, one in enumerate(instructions) if one.word == "FROM"]
    return instructions[starts[-1] :] if starts else instructions


def copied_files(text: str, context: Iterable[str]) -> tuple[Copied, ...]:
    """Which files of the build context (relative paths) the image has, and where.

    Copies from other stages and paths with variables are left out.
    """
    paths = sorted(context)
    workdir = "/"
    folders = known_folders(text)
    found: list[Copied] = []
    for number, one in enumerate(last_stage(parse(text))):
        if one.word == "WORKDIR":
            workdir = posixpath.normpath(posixpath.join(workdir, one.arguments.strip("\"'")))
            folders.add(workdir)
        if one.word not in {"COPY", "ADD"}:
            continue
        sources, target = arguments(one)
        if not sources or "$" in target or "<<" in one.arguments:
            continue
        there = posixpath.normpath(posixpath.join(workdir, target))
        into = target.endswith(("/", "/.")) or len(sources) > 1 or there in folders
        for source in sources:
            name = _normal(source)
            for path in paths:
                copied = _target_of(path, name, there, into)
                if copied is not None:
                    found.append(Copied(path, copied, number))
                    folders.add(posixpath.dirname(copied))
    return tuple(found)


def known_folders(text: str) -> set[str]:
    """The paths that are folders in the image, as far as the Dockerfile tells.

    A copy to one of them goes into it, with or without a slash at its end.
    """
    found = {"/", *(f"/{name}" for name in _TOP_FOLDERS)}
    where = "/"
    for one in last_stage(parse(text)):
        made: list[str] = []
        if one.word == "WORKDIR":
            where = posixpath.normpath(posixpath.join(where, one.arguments.strip("\"'")))
            made = [where]
        elif one.word == "RUN":
            made = [path for words in _MKDIR.findall(one.arguments) for path in words.split()]
        for path in made:
            place = posixpath.normpath(posixpath.join(where, path))
            while path[:1] not in ("", "-") and place not in found:
                found.add(place)
                place = posixpath.dirname(place)
    return found


def arguments(one: Instruction) -> tuple[tuple[str, ...], str]:
    """Sources and target of a COPY or ADD; no sources when they are not from the build context."""
    rest = one.arguments
    while rest.startswith("--"):
        flag, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        if flag.startswith("--from"):
            return (), ""
    try:
        words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    except ValueError:
        return (), ""
    if len(words) < 2 or any("$" in word or "://" in word for word in words[:-1]):
        return (), ""
    return tuple(words[:-1]), words[-1]


def _normal(source: str) -> str:
    return posixpath.normpath(source.lstrip("/") or ".")


def _target_of(path: str, source: str, there: str, into: bool) -> str | None:
    """Where `COPY source there` puts the file `path`, or None when it does not copy it."""
    if source == ".":
        return posixpath.join(there, path)
    if path.startswith(f"{source}/"):
        return posixpath.join(there, path[len(source) + 1 :])
    if path == source:
        return posixpath.join(there, posixpath.basename(path)) if into else there
    if any(mark in source for mark in "*?["):
        depth = source.count("/") + 1
        head = "/".join(path.split("/")[:depth])
        if fnmatchcase(head, source):
            rest = path[len(head) + 1 :]
            return posixpath.join(there, rest or posixpath.basename(path))
    return None


def without_file(text: str, path: str, remaining: Iterable[str]) -> str:
    """The Dockerfile once `path` has left the build context, of which `remaining` is still there.

    A copy that would find nothing any more becomes the making of its folder, so that the image
    builds and the place is there.
    """
    rest = tuple(remaining)
    lines = text.splitlines()
    workdir = "/"
    folders = known_folders(text)
    edits: list[tuple[Instruction, str]] = []
    for one in last_stage(parse(text)):
        if one.word == "WORKDIR":
            workdir = posixpath.normpath(posixpath.join(workdir, one.arguments.strip("\"'")))
        if one.word not in {"COPY", "ADD"}:
            continue
        sources, target = arguments(one)
        there = posixpath.normpath(posixpath.join(workdir, target))
        kept = tuple(s for s in sources if _finds(s, rest, there))
        if len(kept) == len(sources):
            continue
        into = target.endswith("/") or there in folders or len(sources) > 1
        into = into or _is_folder(sources[0], path)
        if kept:
            slash = "" if target.endswith("/") else "/"
            flags = " ".join(w for w in one.arguments.split() if w.startswith("--"))
            edits.append((one, " ".join(filter(None, (one.word, flags, *kept, target + slash)))))
        else:
            folder = there if into else posixpath.dirname(there)
            edits.append((one, f"RUN mkdir -p {shlex.quote(folder)}"))
    for one, line in reversed(edits):
        lines[one.first : one.end] = [line]
    return "\n".join(lines) + "\n"


def _finds(source: str, paths: tuple[str, ...], there: str) -> bool:
    return any(_target_of(path, _normal(source), there, True) is not None for path in paths)


def _is_folder(source: str, path: str) -> bool:
    return path != _normal(source)


def with_copy(text: str, context: str, target: str) -> str:
    """The Dockerfile with one more folder copied, before the words that only say how to start."""
    lines = text.splitlines()
    at = len(lines)
    for one in reversed(parse(text)):
        if one.word not in _CLOSING:
            break
        at = one.first
    lines.insert(at, f"COPY {context}/ {target}/")
    return "\n".join(lines) + "\n"


def runs(text: str) -> tuple[str, ...]:
    """What the last stage's RUN instructions execute."""
    return tuple(one.arguments for one in last_stage(parse(text)) if one.word == "RUN")


def workdir(text: str) -> str:
    """The last working directory, `/` when none is set."""
    where = "/"
    for one in last_stage(parse(text)):
        if one.word == "WORKDIR":
            where = posixpath.normpath(posixpath.join(where, one.arguments.strip("\"'")))
    return where


def user(text: str) -> str | None:
    """The last USER, None when none is set."""
    named = [one.arguments for one in last_stage(parse(text)) if one.word == "USER"]
    return named[-1] if named else None

"""Scenario and skill tokens, read mechanically from traces and from shell text. No model.

The same functions made the reference counts and read the traces, so that a token means the same on
both sides.

- A **scenario** token is the kind of a file that work begins from: its extension, in lower case,
  without rotation numbers (`access.log.2` is `.log`).
- A **skill** token is a program (`tar`), or a Python module where a program is Python and its
  source is known (`py:zlib`). Shells and mere glue are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sandbox.contracts import SandboxFile, Trace

NO_KIND = "(none)"
OTHER_KIND = "(other)"

_EXTENSION = re.compile(r"[a-z0-9][a-z0-9+_-]{0,11}")
_VERSION = re.compile(r"^(python|perl|ruby|node|php)[\d.]+$")
_PROGRAM = re.compile(r"[a-z0-9][a-z0-9_.+-]{0,29}")
_SAME = {
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "original-awk": "awk",
    "egrep": "grep",
    "fgrep": "grep",
    "python": "python3",
}
_GLUE_WORDS = """
bash sh dash zsh env sudo time nohup exec command eval source dirname basename mktemp echo printf
true false test cd set export exit return read local if then else elif fi for while until do done
case esac in function declare unset shift trap wait sleep pwd break continue alias unalias history
shopt ulimit umask getopts let select type hash jobs fg bg disown builtin typeset mapfile readarray
print
"""
_GLUE = frozenset(_GLUE_WORDS.split())
_OWN_FOLDERS = ("/app/", "/srv/", "/opt/", "/home/", "/data/", "/root/", "/workspace/", "/var/")
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2[ \t]*$", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_SIMPLE = re.compile(r"['\"][\w./*?+-]*['\"]")
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
_SEPARATOR = re.compile(r"\|\||&&|[|;&\n(){}`]|\$\(")
_WRAPPERS = frozenset(("sudo", "xargs", "time", "nohup", "env", "exec", "-exec", "-execdir"))


@dataclass(frozen=True, slots=True, order=True)
class Skill:
    """A skill token, and the kinds of the files that it was applied to."""

    token: str
    kinds: tuple[str, ...] = ()


def file_kind(path: str) -> str:
    """The kind of a file by its name: ".csv", "makefile", "(none)" without an extension."""
    name = path.rstrip("/").rsplit("/", 1)[-1].strip("'\"*?").lower()
    while re.search(r"\.\d+$", name):
        name = name.rsplit(".", 1)[0]
    if name in ("makefile", "dockerfile"):
        return name
    stem, dot, extension = name.rpartition(".")
    if not dot:
        return NO_KIND
    if not stem and not extension:
        return NO_KIND
    return f".{extension}" if _EXTENSION.fullmatch(extension) else OTHER_KIND


def program_name(word: str) -> str | None:
    """The skill token of a program's path, or None for shells, glue and what is no program."""
    name = word.rsplit("/", 1)[-1]
    version = _VERSION.match(name)
    name = (version[1] + ("3" if version[1] == "python" else "")) if version else name
    name = _SAME.get(name, name)
    if not _PROGRAM.fullmatch(name) or name in _GLUE or name.endswith((".sh", ".py")):
        return None
    return None if name.isdigit() else name


def python_modules(source: str) -> tuple[str, ...]:
    """The top modules that a text of Python (or of shell with Python in it) imports, sorted."""
    return tuple(sorted(set(_IMPORT.findall(source)) - {"__future__"}))


def argument_kinds(words: Iterable[str]) -> tuple[str, ...]:
    """The kinds of the files that a command's arguments name, sorted."""
    kinds = (
        file_kind(word)
        for word in words
        if not word.startswith("-") and ("/" in word or "." in word.strip("./"))
    )
    return tuple(sorted({kind for kind in kinds if kind not in (NO_KIND, OTHER_KIND)}))


def scenario_kinds(trace: Trace) -> tuple[str, ...]:
    """The kinds of the files that were read and not made by the work itself, sorted."""
    made = set(trace.written)
    return tuple(
        sorted(
            {
                file_kind(path)
                for path in trace.read
                if path not in made and path.startswith(_OWN_FOLDERS)
            }
        )
    )


def trace_skills(trace: Trace, sources: Iterable[SandboxFile] = ()) -> tuple[Skill, ...]:
    """The distinct skills of a traced run, sorted.

    With `sources` (the solution's files), a Python program is told apart by what its source
    imports; otherwise it is `python3`. Scripts of the solution itself are not skills.
    """
    texts = {file.path: file.data.decode(errors="replace") for file in sources if not file.link}
    found: set[Skill] = set()
    for words in trace.commands:
        found.update(_command_skills(words, texts))
    return tuple(sorted(found))


def _command_skills(words: tuple[str, ...], texts: dict[str, str]) -> Iterator[Skill]:
    if not words:
        return
    modules = [m for word in words for m in python_modules(texts.get(_in_solution(word), ""))]
    yield from (Skill(f"py:{module}") for module in modules)
    if words[0].startswith("/solution/"):
        return
    name = program_name(words[0])
    if name == "python3" and modules:
        return
    if name is not None:
        yield Skill(name, argument_kinds(words[1:]))


def _in_solution(word: str) -> str:
    return word.removeprefix("/solution/") if word.startswith("/solution/") else ""


def shell_skills(text: str) -> tuple[Skill, ...]:
    """The distinct skills of some shell text, sorted: what stands first in each simple command."""
    found: set[Skill] = set()
    plain = _QUOTED.sub(_without_code, _COMMENT.sub("", _HEREDOC.sub("", text)))
    for part in _SEPARATOR.split(plain.replace("\\\n", " ")):
        words = part.split()
        while words and (_is_before(words[0]) or words[0] in _GLUE):
            words.pop(0)
        for number, word in enumerate(words):
            is_first = number == 0
            if is_first or words[number - 1] in _WRAPPERS:
                name = program_name(word.strip("'\""))
                if name is not None:
                    found.add(Skill(name, argument_kinds(words[number + 1 :])))
    return tuple(sorted(found))


def _is_before(word: str) -> bool:
    """Whether a word may stand before the program of a command: a wrapper, its options, a value."""
    return word in _WRAPPERS or word.startswith("-") or "=" in word


def _without_code(match: re.Match[str]) -> str:
    """Quoted text is kept where it is a plain word (a file's name), else it is a program's text."""
    return match[0][1:-1] if _SIMPLE.fullmatch(match[0]) else "QUOTED"

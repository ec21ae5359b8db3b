"""The commands of a shell script, as far as text tells: enough to see what it installs and starts.

No shell: words are not expanded, and what stands in here-documents is kept apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_RESERVED = frozenset(
    (
        *("if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done"),
        *("case", "esac", "in", "{", "}", "!", "time"),
    )
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_REDIRECT = re.compile(r"(\d*|&)(>>|>&|<&|>|<<<|<)\|?(&?\S*)")
_PIECE = re.compile(
    r"(?P<blank>[ \t]+|\\\n)"
    r"|(?P<comment>(?<![^\s;&|()])#[^\n]*)"
    r"|(?P<end>\n|;;?|&&|\|\|?&?|&(?![>0-9])|\(|\))"
    r"|(?P<single>\$?'(?:[^']*)')"
    r'|(?P<double>"(?:\\.|[^"\\])*")'
    r"|(?P<nested>\$\(|`)"
    r"|(?P<escaped>\\.)"
    r"|(?P<plain>[<>]&|&>>?|>\||[^\s;&|()'\"\\`$]+|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command: its words without assignments and redirections."""

    words: tuple[str, ...]
    assigned: tuple[str, ...] = ()
    """Names that are set before it."""

    @property
    def name(self) -> str:
        """The program's or function's name."""
        return self.words[0] if self.words else ""


@dataclass
class Script:
    """What a script says: its commands, those of its substitutions, and its here-documents."""

    commands: list[Command] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    is_readable: bool = True
    """False where quotes or substitutions do not end."""


def read_script(text: str) -> Script:
    """Read a script. Never raises; what cannot be read is said by `is_readable`."""
    script = Script()
    _read(_without_documents(text, script), script)
    return script


def _without_documents(text: str, script: Script) -> str:
    """The text without the bodies of here-documents, which are kept apart."""
    kept: list[str] = []
    lines = iter(text.replace("\\\n", " ").split("\n"))
    for line in lines:
        marks = [] if line.lstrip().startswith("#") else _HEREDOC.findall(line)
        kept.append(_HEREDOC.sub(" ", line) if marks else line)
        for _, mark in marks:
            body: list[str] = []
            for inner in lines:
                if inner.strip() == mark:
                    break
                body.append(inner)
            script.documents.append("\n".join(body))
    return "\n".join(kept)


def _read(text: str, script: Script) -> None:
    words: list[str] = []
    word: str | None = None
    at = 0

    def end_word() -> None:
        nonlocal word
        if word is not None:
            words.append(word)
        word = None

    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:  # cannot be: the last alternative takes any character
            break
        at = match.end()
        kind, piece = match.lastgroup, match[0]
        if kind in ("blank", "comment"):
            end_word()
        elif kind == "end":
            end_word()
            _take(words, script)
            words = []
        elif kind == "nested":
            inner, at = _nested(text, at, piece)
            if inner is None:
                script.is_readable = False
                return
            _read(inner, script)
            word = f"{word or ''}$()"
        elif kind == "double":
            for inner in re.findall(r"\$\(([^()]*)\)", piece):
                _read(inner, script)
            word = (word or "") + re.sub(r"\\(.)", r"\1", piece[1:-1])
        elif kind == "single":
            word = (word or "") + piece.strip("$").strip("'")
        else:
            if piece in "'\"":
                script.is_readable = False
                return
            word = (word or "") + (piece[1:] if kind == "escaped" else piece)
    end_word()
    _take(words, script)


def _nested(text: str, at: int, opening: str) -> tuple[str | None, int]:
    """The text of a substitution that was opened before `at`, and where it ends."""
    if opening == "`":
        end = text.find("`", at)
        return (None, at) if end < 0 else (text[at:end], end + 1)
    depth = 1
    for place in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return text[at:place], place + 1
    return None, at


def _take(words: list[str], script: Script) -> None:
    """Add a command of these words, if anything is left of them."""
    kept: list[str] = []
    assigned: list[str] = []
    is_target = False
    for word in words:
        redirect = _REDIRECT.match(word) if not is_target else None
        if is_target:
            is_target = False
        elif redirect:
            is_target = not redirect[3]
        elif not kept and word in _RESERVED:
            continue
        elif not kept and _ASSIGNMENT.match(word):
            assigned.append(word.split("=")[0].rstrip("+"))
        else:
            kept.append(word)
    if kept or assigned:
        script.commands.append(Command(tuple(kept), tuple(assigned)))

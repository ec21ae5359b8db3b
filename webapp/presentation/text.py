"""Text that nobody trusts, made fit for a page: decoded, cut, without terminal escapes."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # operating system commands, hyperlinks among them
    r"|\x1b[P^_X][^\x1b]*(?:\x1b\\)?"  # device control and the like, up to their terminator
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
    r"|\x1b[ -/]*[0-~]?"
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
_LINE_CAP = 2_000


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text as shown. `cut` says how much is missing, empty when nothing is."""

    text: str
    cut: str = ""


def decode(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes the replacement character."""
    return data.decode("utf-8", "replace")


def clean(text: str) -> str:
    """Without terminal escapes; control and invisible characters become visible escapes."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if plain.isascii() and plain.isprintable():
        return plain
    return "".join(_visible(char) for char in plain)


def _visible(char: str) -> str:
    if char in "\n\t" or char.isprintable():
        return char
    if unicodedata.category(char) == "Zs":
        return " "
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else "\ufffd"


def excerpt(text: str, *, cap: int = 100_000, lines: int = 3_000) -> Excerpt:
    """The head of a text: at most `cap` characters and `lines` lines, long lines cut."""
    cut: list[str] = []
    if len(text) > cap:
        cut.append(f"{len(text) - cap:,} more characters")
        text = text[:cap]
    rows = clean(text).split("\n")
    if len(rows) > lines:
        cut.append(f"{len(rows) - lines:,} more lines")
        rows = rows[:lines]
    if any(len(row) > _LINE_CAP for row in rows):
        cut.append("long lines")
        rows = [row if len(row) <= _LINE_CAP else row[:_LINE_CAP] + " …" for row in rows]
    return Excerpt("\n".join(rows), ", ".join(cut))


_ITEM = re.compile(r"(\s*)(?:[-*+]|\d+[.)])\s+")
_OWN_LINE = re.compile(r"\s|[-*+>#|]|\d+[.)]\s|`{3}|~{3}")


def _goes_on(item: str, line: str) -> bool:
    """Whether the indented line is the rest of the item of a list, not a new one or its code."""
    head = _ITEM.match(item)
    indent = len(line) - len(line.lstrip())
    if not head or _OWN_LINE.match(line.lstrip()):
        return False
    return len(head[1]) < indent <= len(head[0])


def unwrap(text: str) -> str:
    """Prose with one line a paragraph or item; tables, headings and code stay as they are."""
    lines: list[str] = []
    is_code = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        goes_on = not _OWN_LINE.match(line) or bool(lines and _goes_on(lines[-1], line))
        joins = lines and lines[-1] and line and goes_on and not (is_code or is_fence)
        if joins and not lines[-1].lstrip().startswith(("#", "|", "```", "~~~")):
            lines[-1] = f"{lines[-1].rstrip()} {line.lstrip()}"
        else:
            lines.append(line)
        is_code ^= is_fence
    return "\n".join(lines)


def tail(data: bytes, *, cap: int = 20_000) -> Excerpt:
    """The end of a command's output, at most `cap` bytes."""
    text = decode(data[-cap:])
    missing = len(data) - cap
    return Excerpt(clean(text), f"{missing:,} earlier bytes" if missing > 0 else "")


def is_binary(data: bytes) -> bool:
    """Whether the content is shown as bytes, not as text: a NUL, or mostly no UTF-8."""
    head = data[:8_192]
    if b"\0" in head:
        return True
    broken = decode(head).count("\ufffd")
    return broken > max(3, len(head) // 50)


def hex_dump(data: bytes, *, rows: int = 32) -> str:
    """The first bytes, sixteen a row: offset, hex, printable ASCII."""
    lines = []
    for offset in range(0, min(len(data), rows * 16), 16):
        row = data[offset : offset + 16]
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        lines.append(f"{offset:08x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(lines)

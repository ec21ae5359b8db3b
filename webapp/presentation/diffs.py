"""What changed between two bundles: files, lines and words, ready to be shown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from webapp.presentation.highlighting import highlight_lines
from webapp.presentation.text import decode, excerpt, is_binary, unwrap

CONTEXT_LINES = 3
LINES_CAP = 300
"""So many lines of a changed file are shown unless more are asked for."""

_EMPTY = SafeString("")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One line of a manifest. `link` is the target of a symbolic link."""

    path: str
    mode: int
    digest: str
    size_bytes: int
    link: str | None = None

    @property
    def mode_text(self) -> str:
        """The permission bits in octal."""
        return f"{self.mode:04o}"


@dataclass(frozen=True, slots=True)
class FileChange:
    """A path that differs. `kind` is added, removed, changed, mode, or moved (from `old.path`)."""

    path: str
    kind: str
    old: FileEntry | None
    new: FileEntry | None

    @property
    def anchor(self) -> str:
        """A name for the page's own links."""
        return "file-" + re.sub(r"[^A-Za-z0-9]+", "-", self.path)


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One row. `kind` is same, added, removed or gap; sides hold number and safe HTML."""

    kind: str
    old_number: int | None = None
    new_number: int | None = None
    old: SafeString = _EMPTY
    new: SafeString = _EMPTY


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The shown difference of one file; `note` stands in where there are no lines to show."""

    change: FileChange
    lines: tuple[DiffLine, ...] = ()
    added: int = 0
    removed: int = 0
    note: str = ""
    cut: str = ""


def changed_files(old: Iterable[FileEntry], new: Iterable[FileEntry]) -> tuple[FileChange, ...]:
    """The paths that differ, the instruction first, then in order of path."""
    before = {entry.path: entry for entry in old}
    after = {entry.path: entry for entry in new}
    gone = {e.digest: e for e in before.values() if e.path not in after and e.size_bytes}
    moved = {e.path: gone.pop(e.digest) for e in after.values() if _came(e, before, gone)}
    left = {entry.path for entry in moved.values()}
    changes = []
    for path in sorted((before.keys() | after.keys()) - left):
        one, two = moved.get(path, before.get(path)), after.get(path)
        if one == two:
            continue
        kind = "moved" if path in moved else _kind(one, two)
        changes.append(FileChange(path, kind, one, two))
    return tuple(sorted(changes, key=lambda change: (_rank(change.path), change.path)))


def _came(entry: FileEntry, before: Mapping[str, FileEntry], gone: Mapping[str, FileEntry]) -> bool:
    return entry.path not in before and entry.link is None and entry.digest in gone


def _rank(path: str) -> int:
    head = path.split("/", 1)[0]
    order = ("instruction.md", "task.toml", "environment", "tests", "solution")
    return order.index(head) if head in order else len(order)


def _kind(old: FileEntry | None, new: FileEntry | None) -> str:
    if old is None:
        return "added"
    if new is None:
        return "removed"
    return "mode" if (old.digest, old.link) == (new.digest, new.link) else "changed"


def file_diff(
    change: FileChange,
    contents: Mapping[str, bytes],
    *,
    is_split: bool = False,
    cap: int = LINES_CAP,
) -> FileDiff:
    """The lines of one changed file, at most `cap`. `contents` are the blobs by digest."""
    if change.kind == "moved" and change.old:
        return FileDiff(change, note=f"from {change.old.path}")
    if change.kind == "mode" and change.old and change.new:
        note = f"mode {change.old.mode_text} → {change.new.mode_text}"
        return FileDiff(change, note=note)
    old, new = _content(change.old, contents), _content(change.new, contents)
    if is_binary(old) or is_binary(new):
        return FileDiff(change, note=f"binary, {len(old):,} → {len(new):,} bytes")
    left, right = excerpt(decode(old)), excerpt(decode(new))
    lines = tuple(_rows(change.path, left.text, right.text, is_split=is_split))
    return FileDiff(
        change,
        lines[:cap],
        added=sum(1 for line in lines if line.kind in ("added", "both")),
        removed=sum(1 for line in lines if line.kind in ("removed", "both")),
        cut=f"{len(lines) - cap:,} more lines" if len(lines) > cap else right.cut or left.cut,
    )


def _content(entry: FileEntry | None, contents: Mapping[str, bytes]) -> bytes:
    if entry is None:
        return b""
    if entry.link is not None:
        return f"→ {entry.link}\n".encode()
    return contents.get(entry.digest, b"")


def _rows(path: str, old: str, new: str, *, is_split: bool) -> Iterable[DiffLine]:
    left, right = _split(old), _split(new)
    left_html, right_html = highlight_lines(path, old), highlight_lines(path, new)
    matcher = difflib.SequenceMatcher(None, left, right)
    end = 0
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        if group[0][1] > end or group[0][3] > end:
            yield DiffLine("gap")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                for offset in range(i2 - i1):
                    i, j = i1 + offset, j1 + offset
                    yield DiffLine("same", i + 1, j + 1, left_html[i], right_html[j])
            elif is_split:
                yield from _paired(range(i1, i2), range(j1, j2), left_html, right_html)
            else:
                for i in range(i1, i2):
                    yield DiffLine("removed", old_number=i + 1, old=left_html[i])
                for j in range(j1, j2):
                    yield DiffLine("added", new_number=j + 1, new=right_html[j])
        end = group[-1][2]
    if end < len(left):
        yield DiffLine("gap")


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _paired(
    old: Sequence[int], new: Sequence[int], left: Sequence[SafeString], right: Sequence[SafeString]
) -> Iterable[DiffLine]:
    for offset in range(max(len(old), len(new))):
        i = old[offset] if offset < len(old) else None
        j = new[offset] if offset < len(new) else None
        kind = "removed" if j is None else "added" if i is None else "both"
        yield DiffLine(
            kind,
            None if i is None else i + 1,
            None if j is None else j + 1,
            _EMPTY if i is None else left[i],
            _EMPTY if j is None else right[j],
        )


@dataclass(frozen=True, slots=True)
class WordRun:
    """Some words in a row. `kind` is same, added or removed; folded ones are the same, too."""

    kind: str
    text: str


def word_diff(old: str, new: str) -> tuple[WordRun, ...]:
    """The new text, its paragraphs unwrapped, with the words that came and went."""
    left, right = (
        re.findall(r"\s*\S+|\s+$", unwrap(excerpt(text, cap=40_000).text)) for text in (old, new)
    )
    matcher = difflib.SequenceMatcher(None, [w.strip() for w in left], [w.strip() for w in right])
    runs: list[WordRun] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            runs.append(WordRun("same", "".join(right[j1:j2])))
            continue
        if i2 > i1:
            runs.append(WordRun("removed", "".join(left[i1:i2])))
        if j2 > j1:
            runs.append(WordRun("added", "".join(right[j1:j2])))
    return tuple(runs)


def fold_same(runs: Sequence[WordRun], *, at_least: int = 4) -> tuple[WordRun, ...]:
    """The runs with what stayed folded, but for the line before and after each change."""
    shown: list[WordRun] = []
    for at, run in enumerate(runs):
        lines = run.text.splitlines(keepends=True)
        head = 0 if at == 0 else 2  # the rest of the changed line, and the one after
        tail = len(lines) - (0 if at == len(runs) - 1 else 2)
        if run.kind != "same" or len(runs) == 1 or tail - head < at_least:
            shown.append(run)
            continue
        parts = (("same", lines[:head]), ("folded", lines[head:tail]), ("same", lines[tail:]))
        shown += [WordRun(kind, "".join(part)) for kind, part in parts if part]
    return tuple(shown)

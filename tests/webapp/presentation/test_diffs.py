"""What changed between two bundles."""

from __future__ import annotations

import difflib
import hashlib

import pytest
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from webapp.presentation.diffs import (
    FileChange,
    FileEntry,
    changed_files,
    file_diff,
    fold_same,
    word_diff,
)
from webapp.presentation.highlighting import highlight_lines
from webapp.presentation.text import unwrap


def entry(path: str, data: bytes, mode: int = 0o644, link: str | None = None) -> FileEntry:
    digest = "" if link else hashlib.sha256(data).hexdigest()
    return FileEntry(path, mode, digest, len(data), link)


def change(old: bytes, new: bytes, path: str = "a.py") -> tuple[FileChange, dict[str, bytes]]:
    one, two = entry(path, old), entry(path, new)
    return changed_files([one], [two])[0], {one.digest: old, two.digest: new}


def test_files_are_told_apart_by_what_happened_and_the_instruction_comes_first() -> None:
    old = [entry("b", b"1"), entry("c", b"1"), entry("instruction.md", b"1"), entry("same", b"1")]
    new = [entry("a", b"9"), entry("c", b"1", 0o755), entry("instruction.md", b"2"), old[3]]
    found = [(c.path, c.kind) for c in changed_files(old, new)]
    assert found == [
        ("instruction.md", "changed"),
        ("a", "added"),
        ("b", "removed"),
        ("c", "mode"),
    ]


def test_a_link_that_moves_is_a_change() -> None:
    old, new = entry("l", b"", link="x"), entry("l", b"", link="y")
    shown = file_diff(changed_files([old], [new])[0], {}, is_split=False)
    assert [strip_tags(line.old or line.new) for line in shown.lines] == ["→ x", "→ y"]


_lines = st.lists(st.sampled_from(["a", "b", "<i>", "c & d", ""]), max_size=12)


@pytest.mark.parametrize("is_split", [True, False])
@given(_lines, _lines)
def test_the_shown_lines_are_the_files_own_lines(
    is_split: bool, old: list[str], new: list[str]
) -> None:
    if old == new:
        return
    texts = ["".join(f"{line}\n" for line in side).encode() for side in (old, new)]
    change_, contents = change(texts[0], texts[1], "notes.txt")
    shown = file_diff(change_, contents, is_split=is_split)
    for line in shown.lines:
        if line.old_number is not None and line.kind != "added":
            assert strip_tags(line.old) == strip_tags(
                highlight_lines("x.txt", old[line.old_number - 1])[0]
            )
        if line.new_number is not None and line.kind != "removed":
            expected = highlight_lines("x.txt", new[line.new_number - 1])[0]
            assert strip_tags(line.new) == strip_tags(expected)
    matcher = difflib.SequenceMatcher(None, old, new)
    touched = [op for op in matcher.get_opcodes() if op[0] != "equal"]
    assert shown.added == sum(op[4] - op[3] for op in touched)
    assert shown.removed == sum(op[2] - op[1] for op in touched)


def test_markup_in_a_file_is_text_in_the_diff() -> None:
    change_, contents = change(b"x = 1\n", b"x = '<script>alert(1)</script>'\n")
    shown = file_diff(change_, contents, is_split=True)
    assert all("<script" not in line.new for line in shown.lines)


def test_binary_files_and_modes_have_a_note_instead() -> None:
    change_, contents = change(b"\0\1", b"\0\2\3", "data.bin")
    assert file_diff(change_, contents, is_split=False).note == "binary, 2 → 3 bytes"
    old, new = entry("s.sh", b"x"), entry("s.sh", b"x", 0o755)
    assert "0644 → 0755" in file_diff(changed_files([old], [new])[0], {}, is_split=False).note


@given(st.text(alphabet="ab .\n", max_size=60), st.text(alphabet="ab .\n", max_size=60))
def test_words_that_stay_or_came_give_the_new_text(old: str, new: str) -> None:
    runs = word_diff(old, new)
    assert "".join(run.text for run in runs if run.kind != "removed") == unwrap(new)
    gone = "".join(run.text for run in runs if run.kind == "removed").split()
    assert len(gone) <= len(old.split())


def test_a_changed_word_is_the_only_one_marked() -> None:
    runs = word_diff("write the report to /app/out", "write the summary to /app/out")
    assert [(run.kind, run.text.strip()) for run in runs] == [
        ("same", "write the"),
        ("removed", "report"),
        ("added", "summary"),
        ("same", "to /app/out"),
    ]


def test_what_stayed_is_folded_up_to_the_lines_beside_a_change() -> None:
    old = "\n".join(f"- line {number}" for number in range(12))
    runs = word_diff(old, old.replace("line 5", "line five"))
    folded = fold_same(runs)
    assert "".join(run.text for run in folded) == "".join(run.text for run in runs)
    kinds = [run.kind for run in folded]
    assert kinds == ["folded", "same", "removed", "added", "same", "folded"]
    assert folded[1].text.strip() == "- line 4\n- line"
    assert folded[4].text == "\n- line 6\n"
    unchanged = word_diff(old, old)
    assert fold_same(unchanged) == unchanged


def test_a_moved_file_is_told_from_one_that_went_and_one_that_came() -> None:
    old, new = entry("data/a.log", b"rows"), entry("intake/one/a.log", b"rows")
    copies = [new, entry("intake/two/a.log", b"rows"), entry("intake/three/a.log", b"others")]
    found = changed_files([old], copies)
    assert [(c.path, c.kind) for c in found] == [
        ("intake/one/a.log", "moved"),
        ("intake/three/a.log", "added"),
        ("intake/two/a.log", "added"),
    ]
    assert file_diff(found[0], {}).note == "from data/a.log"


def test_long_differences_are_cut_but_counted_in_full() -> None:
    change_, contents = change(b"", b"line\n" * 500, "a.log")
    shown = file_diff(change_, contents, cap=40)
    assert (len(shown.lines), shown.added, shown.cut) == (40, 500, "460 more lines")

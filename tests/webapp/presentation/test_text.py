"""Text that nobody trusts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from webapp.presentation.text import clean, excerpt, hex_dump, is_binary, tail, unwrap


def test_terminal_escapes_vanish() -> None:
    assert clean("\x1b[1;31mred\x1b[0m") == "red"
    assert clean("\x1b]8;;https://evil.example\x07link\x1b]8;;\x07") == "link"
    assert clean("\x1b]0;title\x1b\\rest") == "rest"
    assert clean("\x9b31mred") == "red"
    assert clean("\x1bPpayload\x1b\\rest") == "rest"


def test_invisible_and_control_characters_become_visible() -> None:
    assert clean("a\x00b\x07") == "a\\x00b\\x07"
    assert clean("pay\u202eload") == "pay\\u202eload"
    assert clean("zero\u200bwidth") == "zero\\u200bwidth"
    assert clean("tag\U000e0041") == "tag\ufffd"
    assert clean("no\u00a0break") == "no break"
    assert clean("one\r\ntwo\tthree") == "one\ntwo\tthree"


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    cleaned = clean(text)
    assert all(c in "\n\t" or c.isprintable() for c in cleaned)
    assert clean(cleaned) == cleaned


def test_long_texts_are_cut_and_say_so() -> None:
    assert excerpt("x" * 50, cap=10).cut == "40 more characters"
    many = excerpt("line\n" * 20, lines=5)
    assert many.text.count("\n") == 4
    assert many.cut == "16 more lines"
    wide = excerpt("x" * 5_000)
    assert wide.cut == "long lines"
    assert len(wide.text) < 2_010


def test_the_end_of_an_output_is_kept() -> None:
    shown = tail(b"x" * 30 + b"end", cap=5)
    assert (shown.text, shown.cut) == ("xxend", "28 earlier bytes")
    assert tail(b"\xff\xfe").text == "\ufffd\ufffd"


def test_binary_is_told_from_text() -> None:
    assert is_binary(b"GIF\x00data")
    assert is_binary(bytes(range(128, 256)) * 20)
    assert not is_binary("grüße".encode())
    assert not is_binary(b"caf\xe9 and more plain text")
    assert not is_binary(b"")


def test_a_dump_shows_offset_hex_and_letters() -> None:
    assert hex_dump(b"Ratchet\x00") == "00000000  52 61 74 63 68 65 74 00" + " " * 26 + "Ratchet."


def test_paragraphs_are_unwrapped_and_structure_stays() -> None:
    code = "```\nx\ny\n```\n"
    source = f"# Title\nOne\ntwo.\n\n- item\n  goes on\n- next\n\n{code}after\nall\n\n| a |\n| b |"
    expected = f"# Title\nOne two.\n\n- item goes on\n- next\n\n{code}after all\n\n| a |\n| b |"
    assert unwrap(source) == expected
    kept = "- item\n  - inner\n\n      code\n\n- next\n      deeper\n    "
    assert unwrap(kept) == kept
    assert unwrap("see February\n2026.ods, and\n1. this") == "see February 2026.ods, and\n1. this"


@given(st.text(alphabet="ab -#`\n", max_size=80))
def test_unwrapping_keeps_every_word(text: str) -> None:
    assert unwrap(text).split() == text.split()

#!/usr/bin/env -S python3 -IS
"""Client of the feed: hands out one page per call. See MANUAL beside it."""

from __future__ import annotations

import binascii
import json
import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

STORE = "/app/feed/store.bin"

NO_SUCH_PAGE, BUSY, EXPIRED, USAGE = 4, 75, 76, 64


def load() -> tuple[dict[str, Any], list[bytes]]:
    """The server's settings and its pages."""
    with open(STORE, encoding="ascii") as file:
        parts = [binascii.a2b_base64(line)[::-1] for line in file]
    return json.loads(parts[0]), parts[1:]


def session_path() -> str:
    """Where the server's side of this machine's session is remembered."""
    name = f".feed-{zlib.crc32(STORE.encode()):08x}"
    return os.path.join(os.environ.get("TMPDIR", "/tmp"), name)


def session() -> dict[str, int]:
    """How often each page was asked for, and how often its cursor was renewed."""
    try:
        with open(session_path(), encoding="ascii") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return {}


def remember(state: dict[str, int]) -> None:
    """Keep the session for the next call."""
    with open(session_path(), "w", encoding="ascii") as file:
        json.dump(state, file)


def cursor_of(number: int, cursors: list[str], state: dict[str, int]) -> str:
    """The cursor that leads to a page at present."""
    start = cursors[number] if number < len(cursors) else "end"
    renewed = state.get(f"renewed {number}", 0)
    return f"{zlib.crc32(f'{start} {renewed}'.encode()):08x}"


def page_number(
    words: list[str], cursors: list[str], pages: list[bytes], state: dict[str, int]
) -> int:
    """Which page is asked for, counted from 0; the number of pages for the end of the data."""
    if not cursors:
        if len(words) != 1 or not words[0].isdigit() or int(words[0]) < 1:
            leave(USAGE, "usage: feed PAGE")
        return min(int(words[0]) - 1, len(pages))
    if not words:
        return 0
    valid = {cursor_of(number, cursors, state): number for number in range(1, len(pages) + 1)}
    if words[0] not in valid:
        leave(EXPIRED, "this cursor is not valid any more")
    return valid[words[0]]


def leave(status: int, message: str) -> NoReturn:
    """End with a status and one line on standard error."""
    sys.stderr.write(f"feed: {message}\n")
    sys.exit(status)


def main() -> None:
    """Answer one call."""
    settings, pages = load()
    cursors, state = settings["cursors"], session()
    number = page_number(sys.argv[1:], cursors, pages, state)
    if number == len(pages):
        leave(NO_SUCH_PAGE, "no more data")
    asked = state.get(f"asked {number}", 0)
    state[f"asked {number}"] = asked + 1
    trouble = settings["trouble"][number]
    kind = trouble[asked] if asked < len(trouble) else ""
    if kind == "expired":
        state[f"renewed {number}"] = state.get(f"renewed {number}", 0) + 1
    remember(state)
    if kind == "expired":
        leave(EXPIRED, "this cursor is not valid any more")
    if kind == "busy":
        leave(BUSY, "busy, ask again")
    page = pages[number]
    head = f"page={number + 1} bytes={len(page)} crc32={zlib.crc32(page):08x}"
    if cursors:
        head += f" next={cursor_of(number + 1, cursors, state)}"
    sent = page[: len(page) * 3 // 5] if kind == "short" else page
    sys.stdout.buffer.write(head.encode() + b"\n" + sent)


main()

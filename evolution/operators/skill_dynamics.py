"""Skill x dynamics: the world answers, but not always and not at once."""

from __future__ import annotations

import base64
import json
import posixpath
import random

from evolution.directions import Aspect, Direction, Effect
from evolution.operators.inputs import Input
from evolution.operators.restoring import Arrival, RestoringOperator
from evolution.operators.wrapping import part
from sandbox.contracts import SandboxFile

_LARGEST = 300_000


class FlakySource(RestoringOperator):
    """An input is served only by a command-line client, in pages, with seeded transient failures.

    Notch 2: some answers are cut short although the client ends with status 0, which only the
    page's own header tells. Notch 3: pages are asked for by a cursor that expires.
    """

    name = "flaky_source"
    title = "Input only through a paged client that fails now and then"
    direction = Direction.SKILL
    aspect = Aspect.DYNAMICS
    effect = Effect.SOLUTION
    folder = "feed"
    number = 26
    note = "Fetches the input page by page from the feed, however often it takes."

    def accepts(self, one: Input) -> bool:
        """Any bytes; pages are made of lines where there are lines."""
        return len(one.data) <= _LARGEST

    def arrival(self, hidden: Input, place: str, notch: int, rng: random.Random) -> Arrival:
        """The client and its store."""
        lines = hidden.data.splitlines(keepends=True)
        size = -(-len(lines) // rng.randint(5, 6))
        pages = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
        trouble = _trouble(len(pages), notch, rng)
        cursors = [f"{rng.getrandbits(40):010x}" for _ in pages] if notch >= 3 else []
        plain = json.dumps({"trouble": trouble, "cursors": cursors})
        store = [plain.encode(), *pages]
        text = "\n".join(base64.b64encode(page[::-1]).decode() for page in store)
        client = part("flaky_source", "client.py", {"STORE": f"{place}/store.bin"})
        manual = part("flaky_source", f"manual-{min(notch, 3)}.txt").decode()
        return Arrival(
            (
                SandboxFile("MANUAL", manual.replace("CLIENT", f"{place}/feed").encode()),
                SandboxFile("feed", client, 0o755),
                SandboxFile("store.bin", f"{text}\n".encode()),
            ),
            situation=f"`{hidden.target}` is not on this machine. It has to be fetched from the "
            f"feed, whose client, `{place}/feed`, hands it out in pages and is not always able "
            f"to answer; `{place}/MANUAL` explains its statuses.",
            requirement=f"`{hidden.target}` is fetched completely, every page once and in order, "
            "byte for byte, and left in place.",
            phrase="paged retrieval with retries from an unreliable client",
            why="The input comes only from a client that refuses, stalls and cuts short: the "
            "solver has to read statuses, retry what is transient and know when it has everything.",
            constants={"HAS_CURSORS": bool(cursors)},
            naive=_naive(place, hidden.target, bool(cursors)),
        )


def _naive(place: str, target: str, has_cursors: bool) -> str:
    """Ask for every page once, and take what comes."""
    head = f"[ -d {place} ] || exit 0\nmkdir -p {posixpath.dirname(target)}\n: > {target}\n"
    if has_cursors:
        return head + (
            f"cursor=\nwhile answer=$({place}/feed $cursor | tee -a {target}); do\n"
            '    cursor=$(sed -n "1s/.*next=//p" <<< "$answer")\n'
            f"done\nsed -i '/^page=[0-9]* bytes=/d' {target}\n"
        )
    return head + (
        f"page=1\nwhile true; do\n    {place}/feed $page | tail -n +2 >> {target} || "
        "[ $? -eq 75 ] || break\n    page=$((page + 1))\ndone\n"
    )


def _trouble(count: int, notch: int, rng: random.Random) -> list[list[str]]:
    """For every page, what the first attempts at it run into."""
    pages = []
    for number in range(count):
        kinds = ["busy"] * (rng.choice((0, 1, 1, 2)) if number != 1 else 2)
        if notch >= 2 and (number == 2 or rng.random() < 0.3):
            kinds.insert(rng.randint(0, len(kinds)), "short")
        # The first page is asked for without a cursor, so none of it can expire.
        if notch >= 3 and (number == 3 or (number and rng.random() < 0.2)):
            kinds.append("expired")
        pages.append(kinds)
    return pages

"""Scenario x constraints: an input that has to be cleaned before it is what the work expects."""

from __future__ import annotations

import posixpath
import random

from evolution.directions import Aspect, Direction, Effect
from evolution.operators.inputs import Input
from evolution.operators.restoring import Arrival, RestoringOperator
from sandbox.contracts import SandboxFile

_LARGEST = 300_000


class ForeignEncoding(RestoringOperator):
    """An input arrives as the spool of another system's export: UTF-16, CRLF, segments sent twice.

    Notch 2: out of order, and with aborted segments. Notch 3: in several spool files, each in an
    encoding of its own.
    """

    name = "foreign_encoding"
    title = "Input as another system's UTF-16 export with repeated segments"
    direction = Direction.SCENARIO
    aspect = Aspect.CONSTRAINTS
    effect = Effect.SOLUTION
    folder = "export"
    number = 20
    note = "Turns the export of the other system back into the plain input."

    def accepts(self, one: Input) -> bool:
        """Only clean text can be told from what an export does to it."""
        return one.is_plain_text and len(one.data) <= _LARGEST and b"@segment" not in one.data

    def arrival(self, hidden: Input, place: str, notch: int, rng: random.Random) -> Arrival:
        """One or more spool files."""
        lines = hidden.data.decode().split("\n")[:-1]
        segments = _segments(lines, rng)
        sent = _sent(segments, notch, rng)
        spools = _spools(sent, notch, rng)
        stem = hidden.name.replace(".", "-")
        files = tuple(
            SandboxFile(f"{stem}.spool-{number}", "".join(blocks).encode(encoding))
            for number, (encoding, blocks) in enumerate(spools, 1)
        )
        return Arrival(
            files,
            situation=_situation(hidden, place, notch, len(files)),
            requirement=f"`{hidden.target}` is restored: every line of the export once, in order, "
            "as UTF-8 without a byte order mark, each line ended by a single line feed.",
            phrase=f"{hidden.name} as a foreign export with repeated segments",
            why="The input is no longer the plain text that the work expects: its encoding has to "
            "be recognised and its transmission undone before any line can be trusted.",
            naive=_naive(place, hidden.target),
        )


def _naive(place: str, target: str) -> str:
    """Decode, and drop the segments' heads, but take every segment that was sent."""
    return (
        f"[ -d {place} ] || exit 0\nmkdir -p {posixpath.dirname(target)}\n"
        f"python3 - {place}/*.spool-* > {target} <<'PY'\n"
        "import sys\n"
        "for path in sys.argv[1:]:\n"
        "    data = open(path, 'rb').read()\n"
        "    is_utf8 = data.startswith(b'\\xef\\xbb\\xbf')\n"
        "    for line in data.decode('utf-8-sig' if is_utf8 else 'utf-16').splitlines():\n"
        "        if not line.startswith('@segment'):\n"
        "            sys.stdout.buffer.write(line.encode() + b'\\n')\n"
        "PY\n"
    )


def _segments(lines: list[str], rng: random.Random) -> list[list[str]]:
    """The lines, cut into eight or more consecutive segments of uneven length."""
    count = min(len(lines), rng.randint(8, 12))
    cuts = sorted(rng.sample(range(1, len(lines)), count - 1))
    return [lines[a:b] for a, b in zip([0, *cuts], [*cuts, len(lines)], strict=True)]


def _sent(segments: list[list[str]], notch: int, rng: random.Random) -> list[str]:
    """The segments as they were sent: some twice; from notch 2 out of order, some cut off."""
    total = len(segments)
    blocks = [_block(number, total, part, part) for number, part in enumerate(segments, 1)]
    again = rng.sample(range(total), max(2, total // 3))
    for number in sorted(again, reverse=True):
        blocks.insert(rng.randint(number + 1, total), blocks[number])
    if notch >= 2:
        rng.shuffle(blocks)
        long = [number for number, part in enumerate(segments, 1) if len(part) > 1]
        for number in rng.sample(long, min(len(long), 3)):
            part = segments[number - 1]
            cut = part[: rng.randrange(1, len(part))]
            blocks.insert(rng.randint(0, len(blocks)), _block(number, total, part, cut))
    return blocks


def _block(number: int, total: int, announced: list[str], lines: list[str]) -> str:
    head = f"@segment {number}/{total} lines={len(announced)}"
    return "".join(f"{line}\r\n" for line in (head, *lines))


def _spools(blocks: list[str], notch: int, rng: random.Random) -> list[tuple[str, list[str]]]:
    """Which blocks lie in which file, and in which encoding each file is."""
    if notch < 3:
        return [("utf-16-le", ["\ufeff", *blocks])]
    encodings = ["utf-16-le", "utf-16-be", "utf-8"]
    rng.shuffle(encodings)
    third = -(-len(blocks) // 3)
    parts = [blocks[at : at + third] for at in range(0, len(blocks), third)]
    return [(name, ["\ufeff", *part]) for name, part in zip(encodings, parts, strict=False)]


def _situation(hidden: Input, place: str, notch: int, count: int) -> str:
    stem = hidden.name.replace(".", "-")
    if count == 1:
        text = (
            f"`{hidden.target}` has not been delivered as the plain text it used to be, but as "
            f"another system's export, `{place}/{stem}.spool-1`, in that system's encoding and "
            "with its line ends."
        )
    else:
        text = (
            f"`{hidden.target}` has not been delivered as the plain text it used to be, but as "
            f"another system's export in {count} spool files, `{place}/{stem}.spool-*`, each in "
            "the encoding of the node that wrote it and with that system's line ends."
        )
    text += (
        " The export consists of segments, each under a line "
        "`@segment NUMBER/TOTAL lines=COUNT` that is not part of the data, and the sender "
        "repeated segments when a confirmation was late."
    )
    if notch >= 2:
        text += (
            " They are not in order; one that holds fewer lines than it announces was broken off "
            "and is void."
        )
    return text

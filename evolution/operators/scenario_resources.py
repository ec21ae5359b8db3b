"""Scenario x resources: what the work needs is there only in part."""

from __future__ import annotations

import hashlib
import json
import posixpath
import random
from dataclasses import dataclass

from evolution.directions import Aspect, Direction, Effect
from evolution.operators.inputs import Input
from evolution.operators.restoring import Arrival, RestoringOperator
from sandbox.contracts import SandboxFile

MIRRORS = ("mirror-a", "mirror-b")
_LARGEST = 400_000
_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class _Cut:
    """How a file was cut: chunks of blocks, the digests of the blocks, the size of a block."""

    chunks: tuple[bytes, ...]
    digests: tuple[tuple[str, ...], ...]
    block: int

    @classmethod
    def of(cls, data: bytes, chunks: int, blocks: int) -> _Cut:
        block = -(-len(data) // (chunks * blocks))
        size = block * blocks
        parts = tuple(data[at : at + size] for at in range(0, len(data), size))
        return cls(parts, tuple(_digests(part, block) for part in parts), block)


def _digests(chunk: bytes, block: int) -> tuple[str, ...]:
    return tuple(
        hashlib.sha256(chunk[at : at + block]).hexdigest() for at in range(0, len(chunk), block)
    )


class DamagedMirrors(RestoringOperator):
    """An input exists only as checksummed chunks in two mirrors, each damaged elsewhere.

    Notch 2: the chunks' names tell nothing, and chunks of an older file lie among them. Notch 3:
    some chunks are damaged in both mirrors, in different blocks.
    """

    name = "damaged_mirrors"
    title = "Input only as chunks in two damaged mirrors"
    direction = Direction.SCENARIO
    aspect = Aspect.RESOURCES
    effect = Effect.SOLUTION
    folder = "mirrors"
    number = 22
    note = "Puts the input together again from the intact parts of both mirrors."

    def accepts(self, one: Input) -> bool:
        """Not so large that two copies would weigh the bundle down."""
        return len(one.data) <= _LARGEST

    def arrival(self, hidden: Input, place: str, notch: int, rng: random.Random) -> Arrival:
        """Two mirrors and their index."""
        count = rng.randint(14, 22)
        cut = _Cut.of(hidden.data, count, _BLOCKS if notch >= 3 else 1)
        damaged = _who_is_damaged(len(cut.chunks), notch, rng)
        files = [SandboxFile("index.json", _index(hidden, cut, notch))]
        for side, mirror in enumerate(MIRRORS):
            kept = [
                (number, _damage(chunk, cut.block, side, damaged[number], rng))
                for number, chunk in enumerate(cut.chunks)
            ]
            named = {_name(notch, number, rng): data for number, data in kept if data is not None}
            if notch >= 2:
                for _ in range(3):
                    named[_name(notch, 0, rng)] = _older(rng.choice(cut.chunks), rng)
            files += [SandboxFile(f"{mirror}/{name}", named[name]) for name in sorted(named)]
        return Arrival(
            tuple(files),
            situation=_situation(hidden, place, notch),
            phrase=f"{hidden.name} left only as chunks in two damaged mirrors",
            why="No single copy of the input is whole any more: the solver has to tell intact "
            "from damaged parts by their checksums, and to merge two sources, before it can begin.",
            naive=f"[ -d {place} ] || exit 0\nmkdir -p {posixpath.dirname(hidden.target)}\n"
            f"cat {place}/{MIRRORS[0]}/* > {hidden.target}\n",
        )


def _who_is_damaged(count: int, notch: int, rng: random.Random) -> list[tuple[bool, bool]]:
    """For every chunk, whether it is damaged in the first and in the second mirror."""
    order = list(range(count))
    rng.shuffle(order)
    share = max(2, count // 3)
    first, second = set(order[:share]), set(order[share : 2 * share])
    if notch >= 3:
        # Not the last one, which may be a single block.
        both = set([number for number in order[2 * share :] if number < count - 1][:2])
        first, second = first | both, second | both
    return [(number in first, number in second) for number in range(count)]


def _damage(
    chunk: bytes, block: int, side: int, who: tuple[bool, bool], rng: random.Random
) -> bytes | None:
    """The chunk as this mirror has it: missing (None), cut short, altered, or whole.

    Where both mirrors are damaged, each has lost a different half of the blocks.
    """
    if not who[side]:
        return chunk
    if all(who):
        half = (len(chunk) // block // 2 or 1) * block
        return (
            chunk[:half] + _altered(chunk[half:], rng)
            if side
            else (_altered(chunk[:half], rng) + chunk[half:])
        )
    kind = rng.choice(("missing", "short", "altered", "altered"))
    if kind == "missing":
        return None
    if kind == "short":
        return chunk[: rng.randrange(len(chunk) // 4, len(chunk) // 2 + 1)]
    return _altered(chunk, rng)


def _altered(chunk: bytes, rng: random.Random) -> bytes:
    """The same length with some digits and letters exchanged, one in every 64 bytes or so."""
    changed = bytearray(chunk)
    for at in range(rng.randrange(min(16, len(chunk))), len(chunk), 64):
        changed[at] = changed[at] ^ 0x01 if changed[at] not in (0x0A, 0x0B) else 0x20
    return bytes(changed)


def _older(chunk: bytes, rng: random.Random) -> bytes:
    return _altered(_altered(chunk[rng.randrange(1, 9) :] + b"\n", rng), rng)


def _name(notch: int, number: int, rng: random.Random) -> str:
    return f"chunk-{number:03d}" if notch == 1 else f"{rng.getrandbits(48):012x}.part"


def _index(hidden: Input, cut: _Cut, notch: int) -> bytes:
    chunks = []
    for number, (chunk, digests) in enumerate(zip(cut.chunks, cut.digests, strict=True)):
        entry: dict[str, object] = {"name": f"chunk-{number:03d}"} if notch == 1 else {}
        entry |= {"bytes": len(chunk), "blocks": list(digests)}
        chunks.append(entry)
    whole = {
        "file": hidden.target,
        "bytes": len(hidden.data),
        "block_bytes": cut.block,
        "digest": "sha256 of each block, in order",
        "chunks": chunks,
    }
    return (json.dumps(whole, indent=1) + "\n").encode()


def _situation(hidden: Input, place: str, notch: int) -> str:
    text = (
        f"`{hidden.target}` did not survive the move to this machine. What is left of it are its "
        f"chunks in two mirrors, `{place}/mirror-a` and `{place}/mirror-b`, and both have "
        "suffered: chunks are missing, cut short or altered"
    )
    if notch >= 3:
        text += ", some of them in both mirrors"
    text += "."
    if notch >= 2:
        text += " Their names tell nothing, and chunks of an older file lie among them."
    return text + f" `{place}/index.json` has the size and the SHA-256 of each part, in order."

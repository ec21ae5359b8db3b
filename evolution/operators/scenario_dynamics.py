"""Scenario x dynamics: the world shows several states, and only one of them is in force."""

from __future__ import annotations

import hashlib
import json
import posixpath
import random

from evolution.directions import Aspect, Direction, Effect
from evolution.operators.inputs import Input
from evolution.operators.restoring import Arrival, RestoringOperator
from evolution.operators.wrapping import part
from sandbox.contracts import SandboxFile

_LARGEST = 200_000
_README = """\
Intake
======
Every delivery lies in a folder of its own: the file as it arrived, and `receipt.json` as the
sender wrote it. Folders are named, and stamped with `received`, when they arrive here.

- A delivery counts only if its file agrees with its receipt in every figure.
- Of those that count, the one with the highest `snapshot` is in force.
- `received` says nothing about what a delivery contains: repeats and retries arrive late.
"""


class StaleCopies(RestoringOperator):
    """Several copies of an input with receipts; the newest-looking one is incomplete.

    Higher notches have more copies. Which one is in force is told nowhere, but follows from the
    contents, the receipts and the note beside them.
    """

    name = "stale_copies"
    title = "Several copies of the input, only one in force"
    direction = Direction.SCENARIO
    aspect = Aspect.DYNAMICS
    effect = Effect.OBSERVATION
    folder = "intake"
    number = 24
    note = "Puts the delivery that is in force in the input's place."

    def accepts(self, one: Input) -> bool:
        """Text, so that a copy can lack lines; not so large that copies weigh the bundle down."""
        return one.is_plain_text and len(one.data) <= _LARGEST

    def arrival(self, hidden: Input, place: str, notch: int, rng: random.Random) -> Arrival:
        """An intake folder with deliveries."""
        lines = hidden.data.decode().splitlines(keepends=True)
        newest = 1000 * rng.randint(2, 8) + rng.randint(100, 900)
        # content, what the receipt describes, snapshot: from the oldest arrival to the newest
        right = (lines, lines, newest)
        deliveries = [
            (older := _without(lines, rng, 0.08), older, newest - rng.randint(5, 20)),
            right,
            (_exchanged(lines, rng), lines, newest),
            (lines[: rng.randrange(len(lines) * 2 // 3, len(lines) - 1)], lines, newest),
        ]
        if notch >= 2:
            stale = _without(lines, rng, 0.03)
            deliveries.insert(2, (stale, stale, newest - rng.randint(1, 4)))
        if notch >= 3:
            deliveries.insert(3, (_doubled(lines, rng), lines, newest + 1))
            stale = _without(lines, rng, 0.05)
            deliveries.insert(0, (stale, stale, newest - rng.randint(30, 60)))
        names = [f"in-{rng.getrandbits(32):08x}" for _ in deliveries]
        minute = rng.randint(100, 900)
        files = [SandboxFile("README", _README.encode())]
        for name, (content, told, snapshot) in zip(names, deliveries, strict=True):
            minute += rng.randint(2, 25)
            receipt = _receipt(hidden.name, "".join(told).encode(), snapshot, minute)
            files.append(SandboxFile(f"{name}/{hidden.name}", "".join(content).encode()))
            files.append(SandboxFile(f"{name}/receipt.json", receipt))
        in_force = names[deliveries.index(right)]
        constants = {"SOURCE": place, "TARGET": hidden.target}
        return Arrival(
            tuple(files),
            situation=f"There is no `{hidden.target}` yet: it has been delivered to `{place}` "
            f"{_WORDS[len(names)]} times over, and the deliveries differ. `{place}/README` says "
            "how deliveries are received.",
            requirement=f"`{hidden.target}` is the delivery that is in force, byte for byte, and "
            "is left in place.",
            phrase=f"{len(names)} differing deliveries of {hidden.name}",
            why="What looks newest is incomplete and what looks complete is out of date: the "
            "solver has to weigh contents against receipts instead of taking the obvious file.",
            naive=_decoy(place, hidden.target),
            decoy=_decoy(place, hidden.target),
            discovery=_discovery(constants),
            withheld=(in_force,),
        )


_WORDS = {4: "four", 5: "five", 7: "seven"}


def _without(lines: list[str], rng: random.Random, share: float) -> list[str]:
    """An earlier state: some lines of the second half are not there yet."""
    half = len(lines) // 2
    gone = set(rng.sample(range(half, len(lines)), max(1, int(share * len(lines)))))
    return [line for number, line in enumerate(lines) if number not in gone]


def _exchanged(lines: list[str], rng: random.Random) -> list[str]:
    """The same lines and size, but two neighbours that differ have changed places."""
    pairs = [at for at in range(len(lines) - 1) if lines[at] != lines[at + 1]]
    changed = list(lines)
    if pairs:
        at = rng.choice(pairs)
        changed[at], changed[at + 1] = changed[at + 1], changed[at]
    return changed


def _doubled(lines: list[str], rng: random.Random) -> list[str]:
    at = rng.randrange(len(lines))
    return [*lines[:at], lines[at], *lines[at:]]


def _receipt(name: str, data: bytes, snapshot: int, minute: int) -> bytes:
    day, rest = divmod(minute, 1440)
    received = f"2024-03-{11 + day:02d}T{rest // 60:02d}:{rest % 60:02d}:00Z"
    told = {
        "file": name,
        "snapshot": snapshot,
        "received": received,
        "bytes": len(data),
        "lines": data.count(b"\n"),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return (json.dumps(told, indent=1) + "\n").encode()


def _decoy(place: str, target: str) -> str:
    """Take what arrived last."""
    return (
        f"[ -d {place} ] || exit 0\n"
        f"newest=$(grep -H received {place}/*/receipt.json | sort -k3 | tail -n 1 | cut -d: -f1)\n"
        f"mkdir -p {posixpath.dirname(target)}\n"
        f'cp "${{newest%/*}}/{posixpath.basename(target)}" {target}\n'
    )


def _discovery(constants: dict[str, str]) -> str:
    """A command that names the delivery in force."""
    script = part("stale_copies", "step.py", constants).decode()
    head = script[: script.index("def main()")]
    return f"python3 -I -B - <<'PY'\n{head}print(delivery_in_force().name)\nPY"

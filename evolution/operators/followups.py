"""Second pieces of work for a sealed order: each with its data, its text and its answer.

Every kind needs its own reasoning about the data; the answers are computed here, and found again
by the reference solution's own script for that kind.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Followup:
    """One order: which script does it, what it says, its data file, and the right answer.

    `skill` names what it needs in a few words. In the order's text, ANSWER stands for the path of
    the answer.
    """

    kind: str
    skill: str
    order: str
    file: str
    data: str
    answer: dict[str, object]


_PLAN = """\
Follow-up: how long does the maintenance take?

jobs.csv beside this order has the columns job, minutes, after, state. `after` names the jobs that
must be finished before this one starts, separated by spaces; a name that ends in `*` means all
jobs whose names begin that way (never the job itself). Jobs whose state is `cancelled` take no
time, but what waits for them still waits for what they wait for. Everything else starts as early
as it may; any number of jobs can run at the same time.

Write ANSWER, a JSON object:
- total_minutes: when the last job ends, counted from the start;
- critical: the names of the jobs that are not cancelled and whose delay by a minute would delay
  the end, in order of their start, then of their names;
- starts: an object that maps every job that is not cancelled to the minute it starts.
"""
_LEDGER = """\
Follow-up: where did the money end up?

movements.csv beside this order has the columns seq, kind, source, target, amount, ref. Lines are
not in order, and some came twice: a seq counts once (repeats are identical). Take them in order
of seq. All accounts start at 1000.
- transfer moves amount from source to target. It is refused, and changes nothing, if source would
  fall below zero.
- reversal moves the amount of the transfer with the seq `ref` back. It is refused if that transfer
  was refused, has been reversed already, comes later, or if its target would fall below zero.

Write ANSWER, a JSON object:
- balances: an object that maps every account to its final balance;
- refused: the list of the seq of all refused movements, ascending;
- lowest: {"account": the account with the lowest balance at any moment, "balance": that balance,
  "seq": the movement after which it was reached first}; on a tie, the earliest.
"""
_LEASES = """\
Follow-up: which slots were in use?

leases.csv beside this order has the columns lease, pool, start, end (minutes, the end not
included). A lease may occur several times: those are renewals; parts that overlap or touch make
one stay, others are stays of their own. In each pool slots are counted from 1; a stay takes the
lowest free slot when it begins and keeps it to its end. What ends at a minute is free at that
minute; stays that begin at the same minute are served in order of their lease names.

Write ANSWER, a JSON object:
- peak: an object that maps each pool to {"count": the most stays at the same time, "at": the
  minute when that was reached first};
- slots: an object that maps "LEASE@START" of every stay (START: the minute it begins) to its slot;
- busiest: the lease with the most minutes in total, the first by name on a tie.
"""


def _plan(rng: random.Random) -> Followup:
    groups = rng.sample(["db", "net", "disk", "dns", "mail", "auth"], 4)
    names = [f"{group}-{number}" for group in groups for number in range(1, rng.randint(7, 10))]
    rng.shuffle(names)
    after: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        after[name] = sorted(rng.sample(names[:number], min(number, rng.choice((0, 1, 1, 2, 3)))))
    finals = [f"check-{number}" for number in (1, 2, 3)]
    written = {name: " ".join(before) for name, before in after.items()}
    for name, group in zip(finals, groups, strict=False):
        after[name] = [job for job in names if job.startswith(group)]
        written[name] = f"{group}*"
    everything = [*names, *finals]
    minutes = {name: rng.randint(4, 55) for name in everything}
    cancelled = set(rng.sample(names, 5))
    rows = [
        f"{name},{minutes[name]},{written[name]},{'cancelled' if name in cancelled else 'open'}\n"
        for name in sorted(everything, key=lambda _: rng.random())
    ]
    time = {name: 0 if name in cancelled else minutes[name] for name in everything}
    start: dict[str, int] = {}
    for name in everything:
        start[name] = max((start[job] + time[job] for job in after[name]), default=0)
    total = max(start[name] + time[name] for name in everything)
    latest = dict.fromkeys(everything, total)
    for name in reversed(everything):
        for job in after[name]:
            latest[job] = min(latest[job], latest[name] - time[name])
    is_open = [name for name in everything if name not in cancelled]
    critical = [name for name in is_open if latest[name] - time[name] == start[name]]
    answer: dict[str, object] = {
        "total_minutes": total,
        "critical": sorted(critical, key=lambda name: (start[name], name)),
        "starts": {name: start[name] for name in sorted(is_open)},
    }
    head = "job,minutes,after,state\n"
    skill = "critical path analysis"
    return Followup("plan", skill, _PLAN, "jobs.csv", head + "".join(rows), answer)


def _ledger(rng: random.Random) -> Followup:
    accounts = [f"{letter}{rng.randint(100, 999)}" for letter in "ABCDEF"]
    rows: list[tuple[str, str, str, int, int]] = []
    for seq in range(1, 91):
        if seq > 8 and rng.random() < 0.25:
            rows.append(("reversal", "", "", 0, rng.randint(max(1, seq - 25), min(90, seq + 2))))
        else:
            source, target = rng.sample(accounts, 2)
            rows.append(("transfer", source, target, rng.randint(20, 700), 0))
    balances = dict.fromkeys(accounts, 1000)
    done: dict[int, tuple[str, str, int]] = {}
    refused = []
    lowest = ("", 10**9, 0)
    for seq, (kind, source, target, amount, ref) in enumerate(rows, 1):
        move = (source, target, amount)
        if kind == "reversal":
            original = done.pop(ref, None)
            move = (original[1], original[0], original[2]) if original else ("", "", 0)
            if original and balances[move[0]] < move[2]:
                done[ref] = original
        if not move[0] or balances[move[0]] < move[2]:
            refused.append(seq)
            continue
        balances[move[0]] -= move[2]
        balances[move[1]] += move[2]
        if kind == "transfer":
            done[seq] = move
        if balances[move[0]] < lowest[1]:
            lowest = (move[0], balances[move[0]], seq)
    lines = [
        f"{seq},{kind},{source},{target},{amount or ''},{ref or ''}\n"
        for seq, (kind, source, target, amount, ref) in enumerate(rows, 1)
    ]
    sent = lines + rng.sample(lines, 12)
    rng.shuffle(sent)
    answer: dict[str, object] = {
        "balances": {name: balances[name] for name in sorted(balances)},
        "refused": refused,
        "lowest": {"account": lowest[0], "balance": lowest[1], "seq": lowest[2]},
    }
    head = "seq,kind,source,target,amount,ref\n"
    skill = "replaying a transaction ledger"
    return Followup("ledger", skill, _LEDGER, "movements.csv", head + "".join(sent), answer)


def _leases(rng: random.Random) -> Followup:
    rows = []
    for pool in ("east", "west", "lab"):
        for number in range(1, rng.randint(12, 16)):
            name = f"{pool[0]}{number:02d}{rng.choice('kmpx')}"
            begin = rng.randint(0, 600)
            for _ in range(rng.choice((1, 2, 2, 3))):
                end = begin + rng.randint(10, 120)
                rows.append((name, pool, begin, end))
                begin = max(begin + 1, end + rng.choice((-20, -5, 0, 1, 30)))
    stays: list[tuple[str, int, str, int]] = []
    for name, pool in sorted({(row[0], row[1]) for row in rows}):
        parts = sorted(row[2:] for row in rows if row[0] == name)
        merged = [parts[0]]
        for begin, end in parts[1:]:
            if begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((begin, end))
        stays += [(pool, begin, name, end) for begin, end in merged]
    peak: dict[str, object] = {}
    slots = {}
    minutes: dict[str, int] = {}
    for pool in ("east", "lab", "west"):
        busy: list[tuple[int, int]] = []
        free = list(range(1, 100))
        most = (0, 0)
        for _, begin, name, end in sorted(stay for stay in stays if stay[0] == pool):
            while busy and busy[0][0] <= begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            slot = heapq.heappop(free)
            heapq.heappush(busy, (end, slot))
            slots[f"{name}@{begin}"] = slot
            minutes[name] = minutes.get(name, 0) + end - begin
            most = (len(busy), begin) if len(busy) > most[0] else most
        peak[pool] = {"count": most[0], "at": most[1]}
    rng.shuffle(rows)
    answer: dict[str, object] = {
        "peak": peak,
        "slots": {key: slots[key] for key in sorted(slots)},
        "busiest": min(minutes, key=lambda name: (-minutes[name], name)),
    }
    lines = [f"{name},{pool},{begin},{end}\n" for name, pool, begin, end in rows]
    head = "lease,pool,start,end\n"
    skill = "interval simulation"
    return Followup("leases", skill, _LEASES, "leases.csv", head + "".join(lines), answer)


KINDS: tuple[Callable[[random.Random], Followup], ...] = (_plan, _ledger, _leases)
"""The makers of follow-ups, one per kind."""

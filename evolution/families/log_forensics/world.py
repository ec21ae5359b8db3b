"""What happened on the hosts: the events, and how their logs tell them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

HOSTS = ("bastion", "db1", "web1", "web2")
_FIRST_DAY, _NOON = 26, 43_200  # of October 2024: the first second that is counted
HOURS = 30
THRESHOLD, WINDOW = 12, 600
SCANNER = "198.51.100.70"
"""Our own; `policy.ini` exempts its network."""
USERS = ("amara", "bjorn", "chen", "deepa", "elif", "femi", "gita", "hugo")
GUESSED = ("root", "admin", "oracle", "postgres", "test", "ubuntu", "backup", "git", "deploy")
_FOLD = 46_800  # seconds from then to the end of summer time, 2024-10-27T01:00Z
_DEVICES = (("lt-0412", "amara"), ("lt-0388", "chen"), ("ws-0107", "femi"), ("ph-0066", "hugo"))


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a log tells; `second` counts from noon, UTC, `count` says how often."""

    second: int
    host: str
    kind: str
    user: str = ""
    source: str = ""
    port: int = 0
    pid: int = 0
    is_known: bool = True
    count: int = 1
    text: str = ""


@dataclass(frozen=True)
class World:
    """The events in order, the clocks of the hosts, the leases, and what lines are broken."""

    events: tuple[Event, ...]
    offsets: Mapping[str, tuple[tuple[int, int], ...]]
    """By host: from which second on, how many minutes its clock is ahead of UTC."""
    leases: tuple[tuple[str, str, str, int, int], ...]
    """Address, device, owner, first and last second."""


def stamp(second: int) -> str:
    """A second as UTC time."""
    day, rest = divmod(_NOON + second, 86_400)
    hour, rest = divmod(rest, 3600)
    return f"2024-10-{_FIRST_DAY + day:02d}T{hour:02d}:{rest // 60:02d}:{rest % 60:02d}Z"


def make(genes: Mapping[str, int], seed: int) -> World:
    """The world of these genes; each part has randomness of its own."""
    events = _attacks(random.Random(f"{seed} attacks"))
    events += _ordinary(random.Random(f"{seed} ordinary"), 400)
    if genes["noise"]:
        events = _repeated(events, random.Random(f"{seed} repeated"))
        events += _broken(random.Random(f"{seed} broken"))
    if genes["noise"] >= 2:
        events += _injected(random.Random(f"{seed} injected"))
    if genes["volume"]:
        events += _bulk(random.Random(f"{seed} bulk"), 110_000)
    if genes["clocks"] >= 2:
        events += _around_the_fold(random.Random(f"{seed} fold"))
    return World(
        tuple(sorted(events, key=_order)),
        _offsets(genes["clocks"]),
        _leases() if genes["leases"] else (),
    )


def _order(event: Event) -> tuple[int, str, str, str, str, int, int]:
    """A total order, by time first; plain tuples sort many times faster than events."""
    port = (event.port, event.pid)
    return (event.second, event.host, event.kind, event.text, event.user, *port)


def _offsets(notch: int) -> dict[str, tuple[tuple[int, int], ...]]:
    if not notch:
        return dict.fromkeys(HOSTS, ((0, 0),))
    found: dict[str, tuple[tuple[int, int], ...]] = {
        "bastion": ((0, 0),),
        "db1": ((0, 330),),
        "web1": ((0, 120),),
        "web2": ((0, -240),),
    }
    if notch >= 2:
        found["web1"] = ((0, 120), (_FOLD, 60))
        found["bastion"] = ((0, 60), (_FOLD, 0))
    return found


def _leases() -> tuple[tuple[str, str, str, int, int], ...]:
    rows = []
    for number, address in enumerate(("10.20.4.17", "10.20.4.31")):
        hour = 3600
        first, second, third = _DEVICES[number], _DEVICES[number + 1], _DEVICES[number + 2]
        change = (9 + 11 * number) * hour + 240
        for (device, owner), begin, end in (
            (third, 0, 5 * hour),
            (first, 5 * hour, change),
            (second, change, 26 * hour),
            (third, 26 * hour, HOURS * hour),
        ):
            rows.append((address, device, owner, begin, end))
    return tuple(rows)


def _attempts(
    rng: random.Random,
    source: str,
    *,
    begin: int,
    count: int,
    gap: int,
    hosts: tuple[str, ...] = HOSTS,
) -> list[Event]:
    found = []
    second = begin
    for _ in range(count):
        user = rng.choice(GUESSED if rng.random() < 0.7 else USERS)
        port, pid = rng.randint(1024, 65000), rng.randint(800, 32000)
        known = user in USERS or user == "root"
        host = rng.choice(hosts)
        found.append(Event(second, host, "failed", user, source, port, pid, known))
        second += rng.randint(gap // 2, gap + gap // 2)
    return found


def _attacks(rng: random.Random) -> list[Event]:
    events: list[Event] = []
    plain = [f"203.0.113.{rng.randint(2, 250)}", f"192.0.2.{rng.randint(2, 250)}"]
    for number, source in enumerate((*plain, "2001:db8:41::9f", "10.20.4.17", "10.20.4.31")):
        begin = {3: 9 * 3600, 4: 20 * 3600}.get(
            number, 3600 * (2 + 5 * number) + rng.randint(0, 900)
        )
        burst = _attempts(rng, source, begin=begin, count=rng.randint(28, 45), gap=24)
        events += burst
        if number in (0, 2, 3):
            last = burst[-1]
            user = rng.choice(USERS)
            for again in (rng.randint(5, 40), rng.randint(3000, 9000)):
                at = last.second + again
                events.append(_login(rng, at, last.host, user, source))
    # Slow on each host, but fast over all of them together.
    spread = f"203.0.113.{251 + rng.randint(0, 2)}"
    events += _attempts(rng, spread, begin=15 * 3600, count=26, gap=40)
    events.append(_login(rng, 15 * 3600 + 2400, "db1", rng.choice(USERS), spread))
    # Never enough of them in one window.
    slow = f"192.0.2.{251 + rng.randint(0, 2)}"
    events += _attempts(rng, slow, begin=4 * 3600, count=60, gap=75)
    # Our own scanner.
    events += _attempts(rng, SCANNER, begin=6 * 3600, count=50, gap=5)
    return events


def _login(rng: random.Random, second: int, host: str, user: str, source: str) -> Event:
    port, pid = rng.randint(1024, 65000), rng.randint(800, 32000)
    return Event(second, host, "accepted", user, source, port, pid)


def _ordinary(rng: random.Random, count: int) -> list[Event]:
    events = []
    homes = [f"198.51.100.{number}" for number in range(10, 10 + len(USERS))]
    for _ in range(count):
        second, host = rng.randrange(HOURS * 3600), rng.choice(HOSTS)
        who = rng.randrange(len(USERS))
        login = _login(rng, second, host, USERS[who], homes[who])
        if rng.random() < 0.2:
            events.append(replace(login, second=max(0, second - 9), kind="failed"))
        events.append(login)
        events.append(_other(rng, second + 1, host))
    return events


def _other(rng: random.Random, second: int, host: str) -> Event:
    pid = rng.randint(800, 32000)
    text = rng.choice(
        (
            f"CRON[{pid}]: pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)",
            f"CRON[{pid}]: pam_unix(cron:session): session closed for user root",
            f"sshd[{pid}]: Connection closed by 198.51.100.{rng.randint(10, 17)} port 50022",
            f"sshd[{pid}]: Received disconnect from 198.51.100.11 port 50110:11: disconnected",
            f"systemd[1]: Started session-{rng.randint(1, 900)}.scope.",
        )
    )
    return Event(second, host, "other", text=text)


def _bulk(rng: random.Random, count: int) -> list[Event]:
    """Much that says nothing."""
    hosts = ("bastion",) * 9 + HOSTS
    return [_other(rng, rng.randrange(HOURS * 3600), rng.choice(hosts)) for _ in range(count)]


def _repeated(events: list[Event], rng: random.Random) -> list[Event]:
    """Some attempts stand for several, as the log daemon writes it."""
    return [
        replace(event, count=rng.randint(2, 6))
        if event.kind == "failed" and rng.random() < 0.12
        else event
        for event in events
    ]


def _broken(rng: random.Random) -> list[Event]:
    """Lines that were cut off: in their head, or in what sshd says."""
    events = []
    for attempt in _attempts(rng, "203.0.113.77", begin=3000, count=18, gap=5000):
        kind = rng.choice(("cut head", "cut text"))
        events.append(replace(attempt, kind=kind, count=rng.randint(12, 18)))
    return events


def _injected(rng: random.Random) -> list[Event]:
    """Attempts whose user name looks like the end of a line about somebody else."""
    victim = "198.51.100.12"
    events = []
    for attempt in _attempts(rng, "192.0.2.200", begin=11 * 3600, count=30, gap=15):
        name = f"{attempt.user} from {victim} port {attempt.port} ssh2"
        events.append(replace(attempt, user=name, is_known=False))
    return events


def _around_the_fold(rng: random.Random) -> list[Event]:
    """Attempts on both sides of the hour that some clocks show twice, so that order tells them."""
    events = []
    for host in ("bastion", "web1"):
        near = (_FOLD - 15, _FOLD - 4, _FOLD + 6, _FOLD + 30)
        events += [_other(rng, second, host) for second in near]
    for second in range(_FOLD - 330, _FOLD + 330, 40):
        at = second + rng.randint(0, 9)
        host = rng.choice(("bastion", "web1"))
        events += _attempts(rng, "203.0.113.140", begin=at, count=1, gap=2, hosts=(host,))
    events.append(_login(rng, _FOLD + 900, "web1", "gita", "203.0.113.140"))
    return events


def line(event: Event, minutes: int) -> str:
    """The line that a host with a clock that many minutes ahead writes."""
    head = f"{stamp(event.second + 60 * minutes)[:-1]} {event.host} "
    if event.kind == "other":
        return head + event.text
    known = "" if event.is_known else "invalid user "
    word = "Accepted" if event.kind == "accepted" else "Failed"
    origin = f"{event.source} port {event.port} ssh2"
    text = f"{word} password for {known}{event.user} from {origin}"
    if event.kind == "cut head":
        return (head + text)[: event.count]
    if event.kind == "cut text":
        return f"{head}sshd[{event.pid}]: {text[: 13 + event.count]}"
    if event.count > 1:
        text = f"message repeated {event.count} times: [ {text}]"
    return f"{head}sshd[{event.pid}]: {text}"


def logs(world: World) -> dict[str, str]:
    """The logs by host."""
    lines: dict[str, list[str]] = {host: [] for host in HOSTS}
    for event in world.events:
        offsets = world.offsets[event.host]
        minutes = [value for begin, value in offsets if begin <= event.second][-1]
        lines[event.host].append(line(event, minutes))
    return {host: "".join(f"{one}\n" for one in found) for host, found in lines.items()}

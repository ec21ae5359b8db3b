"""What a right report says, from the events themselves instead of from the logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from evolution.families.log_forensics.world import SCANNER, THRESHOLD, WINDOW, Event, World, stamp


def truth(world: World, genes: Mapping[str, int]) -> dict[str, Any]:
    """What a right report says."""
    failed: dict[str, list[Event]] = defaultdict(list)
    for event in world.events:
        if event.kind == "failed" and event.source != SCANNER:
            failed[event.source].append(event)
    attackers = {source: found for source, found in failed.items() if _is_attack(found)}
    breaches: dict[tuple[str, str], Event] = {}
    for event in world.events:
        first = attackers.get(event.source)
        if event.kind == "accepted" and first and event.second > first[0].second:
            breaches.setdefault((event.user, event.host), event)
    report: dict[str, Any] = {
        "lines": len(world.events),
        "attackers": [
            {
                "source": source,
                "failed": sum(one.count for one in found),
                "users": len({one.user for one in found}),
                "hosts": sorted({one.host for one in found}),
                "first": stamp(found[0].second),
            }
            for source, found in attackers.items()
        ],
        "breaches": [
            {"user": one.user, "host": one.host, "source": one.source, "at": stamp(one.second)}
            for one in breaches.values()
        ],
    }
    report["attackers"].sort(key=lambda one: (-one["failed"], one["source"]))
    report["breaches"].sort(key=lambda one: (one["at"], one["user"], one["host"]))
    return {"incident": report, **_extras(world, attackers, genes)}


def _is_attack(found: list[Event]) -> bool:
    times = [one.second for one in found for _ in range(one.count)]
    pairs = zip(times, times[THRESHOLD - 1 :], strict=False)
    return any(last - first < WINDOW for first, last in pairs)


def _extras(
    world: World, attackers: Mapping[str, list[Event]], genes: Mapping[str, int]
) -> dict[str, Any]:
    """What the further outputs of the genes hold."""
    found: dict[str, Any] = {}
    if genes["clocks"]:
        found["timeline"] = sorted(
            [stamp(one.second), one.host, one.user, one.source]
            for one in world.events
            if one.kind == "accepted"
            and one.source in attackers
            and one.second > attackers[one.source][0].second
        )
    if genes["noise"]:
        number: dict[str, int] = defaultdict(int)
        rejected = []
        for event in world.events:
            number[event.host] += 1
            if event.kind.startswith("cut"):
                rejected.append((event.host, number[event.host]))
        found["rejected"] = [f"{host}:{at}" for host, at in sorted(rejected)]
    if genes["leases"]:
        found["devices"] = _devices(world, attackers)
    if genes["volume"]:
        hours: dict[str, int] = defaultdict(int)
        for event in world.events:
            if event.kind == "failed":
                hours[stamp(event.second)[:13]] += event.count
        found["hourly"] = [[hour, str(hours[hour])] for hour in sorted(hours)]
    return found


def _devices(world: World, attackers: Mapping[str, list[Event]]) -> list[list[str]]:
    counts: dict[tuple[str, str, str], int] = defaultdict(int)
    for address, device, owner, begin, end in world.leases:
        for event in attackers.get(address, []):
            if begin <= event.second < end:
                counts[address, device, owner] += event.count
    return [[*key, str(counts[key])] for key in sorted(counts)]

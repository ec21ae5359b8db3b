"""The report says what happened, and so do the further files that the instruction asks for."""

import csv
import json
import os
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = "/app/out/"
with open(os.path.join(HERE, "expected.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)


def incident() -> dict[str, Any]:
    """The report as an object."""
    with open(OUT + "incident.json", encoding="utf-8") as file:
        report = json.load(file)
    assert isinstance(report, dict), "incident.json is no object"
    extra = set(report) - {"lines", "attackers", "breaches"}
    assert not extra, "incident.json has further keys: " + ", ".join(sorted(extra))
    return dict(report)


def rows(name: str, header: str) -> list[list[str]]:
    """The rows of a CSV file below its header."""
    with open(OUT + name, encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    assert found[:1] == [header.split(",")], name + " has another header"
    return found[1:]


def same(found: Any, wanted: list[Any], what: str) -> None:
    """Compare lists, and say where they differ."""
    assert isinstance(found, list), what + " is no list"
    for number, want in enumerate(wanted[: len(found)], 1):
        have = found[number - 1]
        is_same = json.dumps(have, sort_keys=True) == json.dumps(want, sort_keys=True)
        assert is_same, what + " entry " + str(number) + " is " + str(have)
    assert len(found) == len(wanted), what + ": " + str(len(found)) + " entries"


def check_line_count() -> None:
    found = incident().get("lines")
    assert type(found) is int, "lines is no whole number"
    assert found == EXPECTED["incident"]["lines"], "lines is not right"


def check_attackers() -> None:
    same(incident().get("attackers"), EXPECTED["incident"]["attackers"], "attackers")


def check_breaches() -> None:
    same(incident().get("breaches"), EXPECTED["incident"]["breaches"], "breaches")


def check_timeline() -> None:
    same(rows("timeline.csv", "at,host,user,source"), EXPECTED["timeline"], "timeline.csv")


def check_rejected() -> None:
    with open(OUT + "rejected.txt", encoding="utf-8") as file:
        same(file.read().split(), EXPECTED["rejected"], "rejected.txt")


def check_devices() -> None:
    same(rows("devices.csv", "source,device,owner,failed"), EXPECTED["devices"], "devices.csv")


def check_hourly() -> None:
    same(rows("hourly.csv", "hour,failed"), EXPECTED["hourly"], "hourly.csv")


# Only what was asked for is judged.
for name in ("timeline", "rejected", "devices", "hourly"):
    if name not in EXPECTED:
        del globals()["check_" + name]

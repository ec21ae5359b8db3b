"""Usage: report.py DATA OUT"""

import configparser
import csv
import ipaddress
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import clocks
import leases
import messages
import reading

DATA, OUT = Path(sys.argv[1]), Path(sys.argv[2])
OWN = ipaddress.ip_network("10.20.0.0/16")

policy = configparser.ConfigParser()
policy.read(DATA / "policy.ini")
THRESHOLD = policy["guessing"].getint("threshold")
WINDOW = policy["guessing"].getint("window_seconds")
EXEMPT = [ipaddress.ip_network(word) for word in policy["exempt"]["networks"].split()]


def utc(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))


def is_exempt(source: str) -> bool:
    return any(ipaddress.ip_address(source) in network for network in EXEMPT)


def write_csv(name: str, header: str, rows: list[list[str]]) -> None:
    with open(OUT / name, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)


# One pass over every log: failed attempts by source, and the logins that were accepted.
failed = defaultdict(list)
logins = []
rejected = []
line_count = 0
hours: Counter[str] = Counter()
for path in reading.logs(DATA / "auth"):
    host = path.name.split(".")[0]
    clock = clocks.Clock(DATA, host)
    for number, line in enumerate(reading.lines(path), 1):
        line_count += 1
        found = messages.read(line)
        if found is messages.BROKEN:
            rejected.append((host, number))
            continue
        second = clock.second(line)
        if found is None:
            continue
        if found.is_accepted:
            logins.append((second, host, found.user, found.source))
            continue
        failed[found.source].append((second, host, found.user, found.times))
        hours[utc(second)[:13]] += found.times

attackers = {}
for source, attempts in failed.items():
    attempts.sort()
    times = [second for second, _, _, count in attempts for _ in range(count)]
    is_fast = any(last - first < WINDOW for first, last in zip(times, times[THRESHOLD - 1 :]))
    if is_fast and not is_exempt(source):
        attackers[source] = attempts

breakins = [
    one for one in sorted(logins) if one[3] in attackers and one[0] > attackers[one[3]][0][0]
]
first_breakins = {}
for second, host, user, source in breakins:
    first_breakins.setdefault((user, host), (second, source))

report = {
    "lines": line_count,
    "attackers": [
        {
            "source": source,
            "failed": sum(count for *_, count in attempts),
            "users": len({user for _, _, user, _ in attempts}),
            "hosts": sorted({host for _, host, _, _ in attempts}),
            "first": utc(attempts[0][0]),
        }
        for source, attempts in attackers.items()
    ],
    "breaches": [
        {"user": user, "host": host, "source": source, "at": utc(second)}
        for (user, host), (second, source) in first_breakins.items()
    ],
}
report["attackers"].sort(key=lambda one: (-one["failed"], one["source"]))
report["breaches"].sort(key=lambda one: (one["at"], one["user"], one["host"]))
(OUT / "incident.json").write_text(json.dumps(report, indent=2) + "\n")

if (DATA / "clocks.csv").exists():
    rows = sorted([utc(second), host, user, source] for second, host, user, source in breakins)
    write_csv("timeline.csv", "at,host,user,source", rows)
if messages.KNOWS_BROKEN_LINES:
    text = "".join(f"{host}:{number}\n" for host, number in sorted(rejected))
    (OUT / "rejected.txt").write_text(text)
if (DATA / "leases.csv").exists():
    book = leases.Book(DATA / "leases.csv")
    counts: Counter[tuple[str, str, str]] = Counter()
    for source, attempts in attackers.items():
        if ipaddress.ip_address(source) in OWN:
            for second, _, _, count in attempts:
                counts[(source, *book.holder(source, second))] += count
    write_csv(
        "devices.csv", "source,device,owner,failed", [[*k, str(counts[k])] for k in sorted(counts)]
    )
if list((DATA / "auth").glob("*.bz2")):
    write_csv("hourly.csv", "hour,failed", [[hour, str(hours[hour])] for hour in sorted(hours)])

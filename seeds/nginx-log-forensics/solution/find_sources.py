"""Usage: find_sources.py ATTEMPTS_TSV ALLOWLIST_CSV DETECTION_INI COVERAGE_JSON > incident.json

The attempts must be in order of time.
"""

import configparser
import csv
import ipaddress
import json
import sys
from collections import defaultdict
from datetime import date, datetime, timezone

attempts_path, allowlist_path, ini_path, coverage_path = sys.argv[1:]
settings = configparser.ConfigParser()
settings.read(ini_path)
stuffing = settings["stuffing"]
window = stuffing.getint("window_seconds")
with open(allowlist_path, newline="") as file:
    allowed = [
        (ipaddress.ip_network(row["network"]), date.fromisoformat(row["valid_until"]))
        for row in csv.DictReader(file)
    ]


def utc(moment):
    return datetime.fromtimestamp(moment, timezone.utc)


def iso(moment):
    return utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_allowed(address, moment):
    day = utc(moment).date()
    return any(address in network and day <= until for network, until in allowed)


def windows(failures):
    """The attempts of the window that ends with each attempt."""
    begin = 0
    for end, (moment, _) in enumerate(failures):
        while moment - failures[begin][0] >= window:
            begin += 1
        yield failures[begin : end + 1]


failed = defaultdict(list)
logins = []
with open(attempts_path) as file:
    for line in file:
        moment, client, address, account, outcome = line.rstrip("\n").split("\t")
        if outcome == "success":
            logins.append((int(moment), client, account))
        elif not is_allowed(ipaddress.ip_address(address), int(moment)):
            failed[client].append((int(moment), account))

sources = {}
for client, failures in failed.items():
    if any(
        len(part) >= stuffing.getint("min_failures")
        and len({account for _, account in part}) >= stuffing.getint("min_accounts")
        for part in windows(failures)
    ):
        sources[client] = failures

compromised = {}
for moment, client, account in logins:
    if client in sources and moment > sources[client][0][0] and account not in compromised:
        compromised[account] = {"account": account, "client": client, "at": iso(moment)}

with open(coverage_path) as file:
    coverage = json.load(file)
report = {
    "lines": {"read": coverage["read"], "unparsed": coverage["unparsed"]},
    "period": {"first": iso(coverage["first"]), "last": iso(coverage["last"])},
    "sources": [
        {
            "client": client,
            "failed": len(failures),
            "accounts": len({account for _, account in failures}),
            "first": iso(failures[0][0]),
            "last": iso(failures[-1][0]),
            "peak": max(len(part) for part in windows(failures)),
        }
        for client, failures in sorted(sources.items(), key=lambda item: (-len(item[1]), item[0]))
    ],
    "compromised": list(compromised.values()),
}
print(json.dumps(report, indent=2))

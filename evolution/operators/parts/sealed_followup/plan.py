"""Earliest starts and the critical jobs of a maintenance plan: plan.py JOBS_CSV"""

import csv
import json
import sys
from functools import cache

with open(sys.argv[1], newline="") as file:
    JOBS = {row["job"]: row for row in csv.DictReader(file)}


def before(job: str) -> list[str]:
    """The jobs that a job waits for."""
    found = []
    for name in JOBS[job]["after"].split():
        if name.endswith("*"):
            found += [other for other in JOBS if other.startswith(name[:-1]) and other != job]
        else:
            found.append(name)
    return found


def minutes(job: str) -> int:
    """How long a job takes."""
    return 0 if JOBS[job]["state"] == "cancelled" else int(JOBS[job]["minutes"])


@cache
def start(job: str) -> int:
    """When a job can start."""
    return max((start(other) + minutes(other) for other in before(job)), default=0)


WAITING: dict[str, list[str]] = {job: [] for job in JOBS}
for name in JOBS:
    for other in before(name):
        WAITING[other].append(name)


@cache
def tail(job: str) -> int:
    """How long it takes from a job's start to the end of all that waits for it."""
    return minutes(job) + max(map(tail, WAITING[job]), default=0)


total = max(start(job) + minutes(job) for job in JOBS)
todo = sorted(job for job in JOBS if JOBS[job]["state"] != "cancelled")
critical = [job for job in todo if start(job) + tail(job) == total]
answer = {
    "total_minutes": total,
    "critical": sorted(critical, key=lambda job: (start(job), job)),
    "starts": {job: start(job) for job in todo},
}
json.dump(answer, sys.stdout, indent=1)

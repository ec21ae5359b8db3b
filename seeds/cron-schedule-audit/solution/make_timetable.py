"""Usage: make_timetable.py RUNS_CSV JOBS_CSV HOSTS_CSV END > timetable.csv (no header, no order)"""

import csv
import sys
from collections import Counter
from datetime import datetime, timedelta

MINUTE = timedelta(minutes=1)

runs_path, jobs_path, hosts_path, night_end = sys.argv[1:]
night_end = datetime.fromisoformat(night_end)


def table(path, key):
    with open(path, newline="") as file:
        return {row[key]: row for row in csv.DictReader(file)}


jobs = table(jobs_path, "job")
hosts = table(hosts_path, "host")
with open(runs_path, newline="") as file:
    runs = list(csv.DictReader(file))

locked = set()
busy = Counter()


def minutes_from(run, start):
    return [start + n * MINUTE for n in range(int(jobs[run["job"]]["minutes"]))]


def has_room(run, start):
    limit = int(hosts[run["host"]]["max_parallel"])
    return all(
        busy[run["host"], minute] < limit and (run["resource"], minute) not in locked
        for minute in minutes_from(run, start)
    )


def place(run, start):
    """Occupy the minutes; print the row."""
    minutes = minutes_from(run, start)
    for minute in minutes:
        busy[run["host"], minute] += 1
        if run["resource"]:
            locked.add((run["resource"], minute))
    first, last = (time.isoformat(timespec="minutes") for time in (start, minutes[-1] + MINUTE))
    status = "kept" if first == run["start"] else "moved"
    print(first, last, run["host"], run["job"], run["start"], status, sep=",")


def earliest(run):
    """The first start that the rules allow, or None."""
    planned = datetime.fromisoformat(run["start"])
    length = int(jobs[run["job"]]["minutes"]) * MINUTE
    for delay in range(int(jobs[run["job"]]["max_delay"]) + 1):
        start = planned + delay * MINUTE
        if start + length <= night_end and has_room(run, start):
            return start
    return None


def turn(run):
    return int(jobs[run["job"]]["priority"]), run["start"], run["host"], run["job"]


fixed = [run for run in runs if jobs[run["job"]]["fixed"] == "yes"]
for run in fixed:
    place(run, datetime.fromisoformat(run["start"]))
for run in sorted((run for run in runs if run not in fixed), key=turn):
    start = earliest(run)
    if start is None:
        print("", "", run["host"], run["job"], run["start"], "dropped", sep=",")
    else:
        place(run, start)

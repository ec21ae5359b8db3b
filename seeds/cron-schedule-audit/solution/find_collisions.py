"""Usage: find_collisions.py RUNS_CSV > collisions.csv (the runs must be in order)"""

import csv
import sys
from datetime import datetime
from itertools import combinations

with open(sys.argv[1], newline="") as file:
    runs = list(csv.DictReader(file))

print(
    "resource,first_start,first_host,first_job,second_start,second_host,second_job,minutes"
)
for one, two in combinations(runs, 2):
    if not one["resource"] or one["resource"] != two["resource"]:
        continue
    until = min(one["end"], two["end"])
    overlap = datetime.fromisoformat(until) - datetime.fromisoformat(two["start"])
    minutes = int(overlap.total_seconds()) // 60
    if minutes > 0:
        pair = [run[field] for run in (one, two) for field in ("start", "host", "job")]
        print(one["resource"], *pair, minutes, sep=",")

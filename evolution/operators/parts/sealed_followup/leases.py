"""Which slots were in use, from a list of leases: leases.py LEASES_CSV"""

import csv
import json
import sys
from collections import Counter, defaultdict

parts = defaultdict(list)
with open(sys.argv[1], newline="") as file:
    for row in csv.DictReader(file):
        parts[row["pool"], row["lease"]].append((int(row["start"]), int(row["end"])))

stays = defaultdict(list)
minutes: Counter[str] = Counter()
for (pool, lease), times in parts.items():
    times.sort()
    begin, end = times[0]
    for next_begin, next_end in [*times[1:], (10**9, 10**9)]:
        if next_begin <= end:
            end = max(end, next_end)
            continue
        stays[pool].append((begin, lease, end))
        minutes[lease] += end - begin
        begin, end = next_begin, next_end

peak, slots = {}, {}
for pool in sorted(stays):
    taken: dict[int, int] = {}
    most, when = 0, 0
    for begin, lease, end in sorted(stays[pool]):
        taken = {slot: until for slot, until in taken.items() if until > begin}
        slot = next(number for number in range(1, 1000) if number not in taken)
        taken[slot] = end
        slots[f"{lease}@{begin}"] = slot
        if len(taken) > most:
            most, when = len(taken), begin
    peak[pool] = {"count": most, "at": when}
answer = {
    "peak": peak,
    "slots": dict(sorted(slots.items())),
    "busiest": min(minutes, key=lambda lease: (-minutes[lease], lease)),
}
json.dump(answer, sys.stdout, indent=1)

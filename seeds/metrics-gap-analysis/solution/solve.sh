#!/bin/bash
# Samples -> true times -> host states per slot -> service states per slot -> the three tables.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
work=$(mktemp -d)
mkdir -p "$out"
first=$(date -u -d 2025-03-30T00:00:00Z +%s)
slots=240

# 1. All complete samples of all hosts: time, host, status.
cat "$data"/samples/*.csv | awk -F ',' '$3 ~ /^(ok|slow|fail|timeout)$/ { print $1 "," $2 "," $3 }' > "$work/samples.csv"

# 2. True times: Unix seconds, corrected by the clock entry that fits.
cat > "$work/true_time.py" <<'PY'
import collections
import csv
import datetime
import sys


def seconds(text):
    if text.isdigit():
        return int(text) / (1000 if len(text) > 11 else 1)
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


offsets = collections.defaultdict(list)
with open(sys.argv[1], newline="") as clock:
    for row in csv.DictReader(clock):
        offsets[row["host"]].append((seconds(row["valid_from"]), int(row["offset_seconds"])))

for time, host, status in csv.reader(sys.stdin):
    for valid_from, offset in sorted(offsets[host], reverse=True):
        true_time = seconds(time) - offset
        if true_time >= valid_from:
            print(f"{true_time:.3f}", host, status, sep="\t")
            break
PY
python3 -B "$work/true_time.py" "$data/clock.csv" < "$work/samples.csv" | sort -n > "$work/true.tsv"

# 3. The state of each host in each slot: the latest sample decides.
awk -F '\t' -v first="$first" -v slots="$slots" '
    $1 >= first { slot = int(($1 - first) / 60) }
    $1 >= first && slot < slots { state[$2 "\t" slot] = $3 ~ /ok|slow/ ? "up" : "down" }
    END { for (key in state) print key "\t" state[key] }' "$work/true.tsv" | sort > "$work/hosts.tsv"

# 4. Services, and the maintenance windows as Unix seconds.
awk '/^\[/ { service = substr($1, 2, length($1) - 2) }
    $1 == "hosts" { sub(/^hosts = /, ""); gsub(/,/, ""); hosts[service] = $0 }
    $1 == "quorum" { print service "\t" $3 "\t" hosts[service] }' "$data/services.ini" | sort > "$work/services.tsv"
tail -n +2 "$data/maintenance.csv" | while IFS=, read -r service from to _; do
    printf '%s\t%s\t%s\n' "$service" "$(date -u -d "$from" +%s)" "$(date -u -d "$to" +%s)"
done > "$work/windows.tsv"

# 5. States per slot become counts and runs.
cat > "$work/report.py" <<'PY'
import datetime
import decimal
import itertools
import sys

work, out, first, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


def rows(name):
    return [line.rstrip("\n").split("\t") for line in open(f"{work}/{name}.tsv")]


def label(slot):
    moment = datetime.datetime.fromtimestamp(first + 60 * slot, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%MZ")


state = {(host, int(slot)): value for host, slot, value in rows("hosts")}
services = [(service, int(quorum), hosts.split()) for service, quorum, hosts in rows("services")]
windows = [(service, int(start), int(end)) for service, start, end in rows("windows")]


def service_state(service, quorum, hosts, slot):
    moment = first + 60 * slot
    if any(service == name and start <= moment < end for name, start, end in windows):
        return "excluded"
    values = [state.get((host, slot), "unknown") for host in hosts]
    if values.count("up") >= quorum:
        return "up"
    return "down" if values.count("up") + values.count("unknown") < quorum else "unknown"


def runs(flags):
    """(first, last) of each run of slots whose flag is set."""
    for is_set, run in itertools.groupby(range(slots), flags.__getitem__):
        members = list(run)
        if is_set:
            yield members[0], members[-1]


with open(f"{out}/gaps.csv", "w") as gaps:
    print("host,first,last,slots", file=gaps)
    for host in sorted(host for _, _, hosts in services for host in hosts):
        for start, end in runs([(host, slot) not in state for slot in range(slots)]):
            if end - start >= 2:
                print(host, label(start), label(end), end - start + 1, sep=",", file=gaps)

with open(f"{out}/availability.csv", "w") as table, open(f"{out}/outages.csv", "w") as outages:
    print("service,up,down,unknown,excluded,availability", file=table)
    print("service,first,last,slots,down", file=outages)
    for service, quorum, hosts in services:
        states = [service_state(service, quorum, hosts, slot) for slot in range(slots)]
        up, down, unknown, excluded = map(states.count, ("up", "down", "unknown", "excluded"))
        share = decimal.Decimal(100 * up) / (up + down)
        share = share.quantize(decimal.Decimal("0.001"), decimal.ROUND_HALF_UP)
        print(service, up, down, unknown, excluded, share, sep=",", file=table)
        for start, end in runs([value in ("down", "unknown") for value in states]):
            hits = [slot for slot in range(start, end + 1) if states[slot] == "down"]
            if hits:
                length = hits[-1] - hits[0] + 1
                print(service, label(hits[0]), label(hits[-1]), length, len(hits), sep=",", file=outages)
PY
python3 -B "$work/report.py" "$work" "$out" "$first" "$slots"

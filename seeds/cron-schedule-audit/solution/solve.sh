#!/bin/bash
# Planned runs, their collisions, and a timetable for the maintenance night.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

begin=$(sed -n 's/^begin *= *//p' "$data/window.ini")
end=$(sed -n 's/^end *= *//p' "$data/window.ini")

# Every run that cron would start on each host: start, host, job.
sed 1d "$data/hosts.csv" | while IFS=, read -r host offset _; do
    python3 "$here/expand_crontab.py" "$data/crontabs/$host.crontab" "$host" "$offset" "$begin" "$end"
done > "$work/starts.csv"
sort "$work/starts.csv" > "$work/ordered.csv"

# With end and resource, then what collides, then the new timetable.
python3 "$here/list_runs.py" "$work/ordered.csv" "$data/jobs.csv" > "$out/runs.csv"
python3 "$here/find_collisions.py" "$out/runs.csv" > "$out/collisions.csv"
python3 "$here/make_timetable.py" "$out/runs.csv" "$data/jobs.csv" "$data/hosts.csv" "$end" \
    > "$work/timetable.csv"

# The order asked for: by start, dropped runs last.
echo start,end,host,job,planned,status > "$out/timetable.csv"
grep -v '^,' "$work/timetable.csv" | sort -t , -k 1,1 -k 3,3 -k 4,4 >> "$out/timetable.csv"
{ grep '^,' "$work/timetable.csv" || true; } | sort -t , -k 5,5 -k 3,3 -k 4,4 >> "$out/timetable.csv"

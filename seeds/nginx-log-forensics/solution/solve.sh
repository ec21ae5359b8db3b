#!/bin/bash
# Incident report and blocklist for the credential-stuffing case.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# All logs, oldest first.
gzip -dc "$data/logs/access.log.3.gz" > "$work/all.log"
gzip -dc "$data/logs/access.log.2.gz" >> "$work/all.log"
cat "$data/logs/access.log.1" "$data/logs/access.log" >> "$work/all.log"

# Trusted proxies, one network a line.
awk '$1 == "set_real_ip_from" { sub(/;.*/, "", $2); print $2 }' "$data/nginx/edge.conf" > "$work/proxies"

# Login attempts (epoch, client, address, account, failed|success) and what the logs cover.
python3 "$here/read_attempts.py" "$work/all.log" "$work/proxies" "$data/detection.ini" \
    "$work/coverage.json" > "$work/attempts.tsv"
sort -n -k1,1 -s "$work/attempts.tsv" > "$work/ordered.tsv"

# Sources with their figures, and the accounts that they got into.
python3 "$here/find_sources.py" "$work/ordered.tsv" "$data/allowlist.csv" "$data/detection.ini" \
    "$work/coverage.json" > "$out/incident.json"

# The blocklist, from the report itself.
python3 "$here/write_blocklist.py" "$out/incident.json" > "$out/blocklist.conf"

#!/bin/bash
# One effective configuration, and what was shadowed on the way.
set -euo pipefail
export LC_ALL=C

config=/app/config
out=/app/out
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# Every statement in reading order: file, line, section, profile, operation, key, value.
python3 "$here/read_statements.py" "$config" gateway.conf > "$work/all.tsv"
awk -F '\t' '$5 == "read" { print $1 }' "$work/all.tsv" > "$out/files.txt"
awk -F '\t' -v OFS='\t' '$5 != "read" && ($4 == "" || $4 == "production")' \
    "$work/all.tsv" > "$work/active.tsv"

# Play them through: what holds in the end, and what was replaced by what.
python3 "$here/replay.py" "$work/active.tsv" "$work/final.json" > "$work/shadowed.csv"

# Typed values with their references filled in.
python3 "$here/resolve.py" "$work/final.json" "$config/schema.tsv" > "$out/effective.json"

# The report, in order.
echo section,key,file,line,value,by_file,by_line > "$out/shadowed.csv"
sort -t , -k 1,1 -k 2,2 -k 3,3 -k 4,4n "$work/shadowed.csv" >> "$out/shadowed.csv"

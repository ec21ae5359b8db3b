#!/bin/bash
# Repaired ledger, reconciliation and list of repairs.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# Plain lines: no byte order mark, no carriage returns, no page lines.
sed -e '1s/^\xef\xbb\xbf//' -e 's/\r$//' "$data/ledger.txt" > "$work/lines"
grep -v -e '^#' -e '^entry;batch;' "$work/lines" > "$work/body"

# One entry a line again; those that were broken are noted.
awk -v joined="$work/joined" '
    /^E[0-9][0-9][0-9][0-9][0-9][0-9];/ { if (NR > 1) print entry; entry = $0; next }
    { entry = entry " " $0; print substr(entry, 1, 7) > joined }
    END { print entry }
' "$work/body" > "$work/entries"

# Each entry once; those that came again are noted.
cut -d ';' -f 1 "$work/entries" | sort | uniq -d > "$work/doubled"
sort -t ';' -k 1,1 -u "$work/entries" > "$work/unique"

# Dates and amounts in one style, then the corrections in order of issue.
python3 "$here/normalise.py" "$data/batches.csv" "$work/unique" > "$work/normal.csv"
python3 "$here/correct.py" "$work/normal.csv" "$data/corrections.csv" \
    "$work/voided" "$work/unapplied" > "$out/ledger.csv"

python3 "$here/reconcile.py" "$out/ledger.csv" "$data/bank_totals.csv" > "$out/reconciliation.csv"
python3 "$here/list_repairs.py" "$work" joined doubled voided unapplied > "$out/repairs.json"

#!/bin/bash
# Puts the mended backup script in place, then proves it with a restore drill.
set -euo pipefail
export LC_ALL=C

out=/app/out
stamp=20260402T0130
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
script=$out/backup.sh
install -m 755 "${0%/*}/backup.sh" "$script"

# The drill, on a copy of the store. One job's folder is gone, so the run has to end with 1.
cp -R /app/store "$work/store"
status=0
"$script" /app/backup/jobs.tsv "$work/store" "$stamp" > "$out/run.log" || status=$?
[ "$status" -eq 1 ]

# What the store holds afterwards.
(cd "$work/store" && find . -type f -printf '%P\n') | sort > "$out/store.txt"

# Every archive of this run, unpacked and listed.
mkdir "$work/restored"
cd "$work/restored"
for archive in "$work"/store/*/*-"$stamp".tar.gz; do
    job=${archive%/*}
    tar -xzf "$archive" --one-top-level="${job##*/}"
done
find . -type f -printf '%P\0' > "$work/names"
xargs -0 stat --printf '%n\t%s\n' -- < "$work/names" > "$work/sizes"
xargs -0 sha256sum -- < "$work/names" | cut -c 1-64 > "$work/sums"
paste "$work/sizes" "$work/sums" | sed 's#/#\t#' |
    sort -t $'\t' -k 1,1 -k 2,2 > "$out/restored.tsv"

#!/bin/bash
# Mends the backup script, then proves it with a restore drill.
set -euo pipefail
export LC_ALL=C

backup=/app/backup
out=/app/out
stamp=20260402T0130
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
script=$out/backup.sh
install -m 755 "$backup/backup.sh" "$script"

# File names with blanks: hand them to tar NUL-separated instead of as words.
sed -i -e '/local files=/d' \
    -e "s#^    tar -C .* | gzip#    (cd \"\$1\" \&\& find . -type f ! -name '*.tmp' -print0 |\n        sort -z | tar --null --no-recursion -T - -cf -) | gzip#" "$script"

# One archive too few: the first line to delete is the one after those kept.
sed -i 's/tail -n "+$2"/tail -n "+$(($2 + 1))"/' "$script"

# Failures unseen: a pipeline fails with any part of it, and the loop sets our own variable.
sed -i -e 's/^    \((cd \|tar -C \)/    (set -o pipefail; \1/' \
    -e 's/gzip -n > "$2"$/gzip -n > "$2")/' "$script"
sed -i 's/^grep -v .* | while /while /' "$script"
sed -i "s/^done\$/done < <(grep -v -e '^#' -e '^\$' \"\$jobs\")/" "$script"

# The drill, on a copy of the store. One job's folder is gone, so the run has to end with 1.
cp -R /app/store "$work/store"
status=0
"$script" "$backup/jobs.tsv" "$work/store" "$stamp" > "$out/run.log" || status=$?
[ "$status" -eq 1 ]

# What the store holds afterwards.
(cd "$work/store" && find . -type f) | sed 's#^\./##' | sort > "$out/store.txt"

# Every archive of this run, unpacked and listed.
mkdir "$work/restored"
for archive in "$work"/store/*/*-"$stamp".tar.gz; do
    job=${archive%/*}
    job=${job##*/}
    mkdir "$work/restored/$job"
    tar -xzf "$archive" -C "$work/restored/$job"
done
cd "$work/restored"
find . -type f -printf '%P\t%s\n' | sort -t $'\t' -k 1,1 > "$work/sizes"
find . -type f -printf '%P\0' | xargs -0 sha256sum -z -- | tr '\0' '\n' |
    sed -E 's#^([0-9a-f]{64})  (.*)$#\2\t\1#' | sort -t $'\t' -k 1,1 > "$work/sums"
join -t $'\t' "$work/sizes" "$work/sums" | sed 's#/#\t#' > "$work/listing"
sort -t $'\t' -k 1,1 -k 2,2 "$work/listing" > "$out/restored.tsv"

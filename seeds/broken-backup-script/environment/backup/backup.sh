#!/bin/bash
if [ $# -ne 3 ]; then
    echo "usage: backup.sh JOBS STORE STAMP" >&2; exit 2
fi
jobs=$1 store=$2 stamp=$3 failed=0
make_archive() {
    local files=$(cd "$1" && find . -type f ! -name '*.tmp' | sort)
    tar -C "$1" -cf - $files | gzip -n > "$2"
}
prune() {
    for old in $(ls "$store/$1" | grep -E "^$1-[0-9]{8}T[0-9]{4}\.tar\.gz$" |
        sort -r | tail -n "+$2" | sort); do
        rm -f "$store/$1/$old"; echo "pruned $old"
    done
}
grep -v -e '^#' -e '^$' "$jobs" | while IFS=$'\t' read -r name keep folder; do
    archive=$store/$name/$name-$stamp.tar.gz
    if mkdir -p "$store/$name" && make_archive "$folder" "$archive"; then
        echo "ok $name $(tar -tzf "$archive" | wc -l)" && prune "$name" "$keep"
    else
        rm -f "$archive"; echo "FAILED $name"; failed=1
    fi
done
exit "$failed"

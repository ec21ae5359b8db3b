#!/bin/bash
# Mended: every file name, as many archives as the job keeps, and no failure goes unseen.
if [ $# -ne 3 ]; then
    echo "usage: backup.sh JOBS STORE STAMP" >&2; exit 2
fi
jobs=$1 store=$2 stamp=$3 failed=0

# File names are never words: they are handed on NUL-separated. Every part has to succeed.
make_archive() {
    mapfile -d '' -t files < <(
        cd "$1" && find . -type f ! -name '*.tmp' -print0 && printf 'all\0'
    )
    if [ "${files[*]: -1}" != all ]; then return 1; fi
    unset 'files[-1]'
    if [ "${#files[@]}" -gt 0 ]; then printf '%s\0' "${files[@]}"; fi |
        tar -C "$1" --null --no-recursion -T - --force-local -czf "$2"
}

# The oldest come first; what is more than the job keeps goes.
prune() {
    local path archives=()
    for path in "$store/$1/$1-"*.tar.gz; do
        if [[ ${path##*/} =~ ^"$1"-[0-9]{8}T[0-9]{4}\.tar\.gz$ ]]; then archives+=("$path"); fi
    done
    if [ "${#archives[@]}" -gt "$2" ]; then
        archives=("${archives[@]::${#archives[@]}-$2}")
        rm -f "${archives[@]}" && printf 'pruned %s\n' "${archives[@]##*/}"
    fi
}

while IFS=$'\t' read -r name keep folder || [ -n "$name" ]; do
    case $name in '' | '#'*) continue ;; esac
    archive=$store/$name/$name-$stamp.tar.gz
    if mkdir -p "$store/$name" && make_archive "$folder" "$archive"; then
        echo "ok $name ${#files[@]}" && prune "$name" "$keep"
    else
        rm -f "$archive"; echo "FAILED $name"; failed=1
    fi
done < "$jobs"
exit "$failed"

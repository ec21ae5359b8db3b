#!/bin/bash
# Carves the members out of the stream, matches them to the catalogue by content, reports the rest.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
work=$(mktemp -d)
mkdir -p "$out/files" "$work/intact"

# 1. Carve: walk from member to member; after a damaged one look for the next header.
cat > "$work/carve.py" <<'PY'
import struct
import sys
import zlib

stream = open(sys.argv[1], "rb").read()
folder = sys.argv[2]


def header_end(start):
    """(offset of the compressed data, name) of the member that starts here, or None."""
    if stream[start:start + 3] != b"\x1f\x8b\x08" or start + 10 > len(stream):
        return None
    flags, at, name = stream[start + 3], start + 10, b""
    if flags & 0xE0:
        return None
    if flags & 4:
        at += 2 + struct.unpack_from("<H", stream, at)[0]
    if flags & 8:
        end = stream.find(b"\0", at)
        name, at = stream[at:end], end + 1
    if flags & 16:
        at = stream.find(b"\0", at) + 1
    if flags & 2:
        at += 2
    return at, name.decode("latin-1")


def read_member(at):
    """(status, content, end) of the compressed data at this offset."""
    inflate = zlib.decompressobj(-15)
    try:
        content = inflate.decompress(stream[at:])
    except zlib.error:
        return "corrupt", b"", at
    if not inflate.eof or len(inflate.unused_data) < 8:
        return "truncated", b"", at
    end = len(stream) - len(inflate.unused_data) + 8
    crc, size = struct.unpack_from("<II", stream, end - 8)
    sound = crc == zlib.crc32(content) and size == len(content) % 2**32
    return ("intact" if sound else "corrupt"), content, end


position = number = 0
while (position := stream.find(b"\x1f\x8b\x08", position)) >= 0:
    head = header_end(position)
    if head is None or not head[1]:
        position += 1
        continue
    status, content, position = read_member(head[0])
    number += 1
    if status == "intact":
        with open(f"{folder}/{number:04d}", "wb") as member:
            member.write(content)
    print(f"{number:04d}", head[1], status, sep="\t")
PY
python3 -B "$work/carve.py" "$data/backup.gzs" "$work/intact" > "$work/members.tsv"

# 2. The digest of each intact member, beside its size, name and number.
wc -c "$work"/intact/* | sed '$d' | awk '{ sub(".*/", "", $2); print $2 "\t" $1 }' > "$work/sizes.tsv"
sha256sum "$work"/intact/* | awk '{ sub(".*/", "", $2); print $2 "\t" $1 }' > "$work/digests.tsv"
join -t $'\t' "$work/sizes.tsv" "$work/digests.tsv" > "$work/contents.tsv"
awk -F '\t' '$3 == "intact" { print $1 "\t" $2 }' "$work/members.tsv" > "$work/names.tsv"
join -t $'\t' "$work/contents.tsv" "$work/names.tsv" > "$work/intact.tsv"

# 3. Recover by content: the first intact member with the catalogued size and digest.
awk -F '\t' -v fates="$work/fate.csv" '
    FILENAME == ARGV[1] { if (!(($2, $3) in first)) first[$2, $3] = $1; next }
    FILENAME == ARGV[2] { last[$2] = $3; next }
    FNR == 1 { next }
    ($3, $4) in first { print first[$3, $4] "\t" $2; print $2 ",recovered," $3 > fates; next }
    {
        status = $2 in last ? last[$2] : "missing"
        sub("intact", "mismatch", status)
        print $2 "," status "," $3 > fates
    }' "$work/intact.tsv" "$work/members.tsv" "$data/catalogue.tsv" > "$work/copies.tsv"
cut -f 2 "$work/copies.tsv" | sed "s#^#$out/files/#; s#/[^/]*\$##" | sort -u | xargs -d '\n' mkdir -p
while IFS=$'\t' read -r number path; do
    cp "$work/intact/$number" "$out/files/$path"
done < "$work/copies.tsv"

# 4. The owner of every path: the longest prefix.
grep -v '^#' "$data/owners.tsv" > "$work/owners.tsv"
awk -F '\t' 'NR == FNR { team[$1] = $2; next }
    {
        split($0, field, ","); best = ""
        for (prefix in team)
            if (index($0, prefix) == 1 && length(prefix) > length(best)) best = prefix
        print field[1] "," team[best] "," field[2] "," field[3]
    }' "$work/owners.tsv" "$work/fate.csv" | sort > "$work/owned.csv"

# 5. The reports.
{
    echo 'path,owner,reason,bytes'
    grep -v ',recovered,' "$work/owned.csv"
} > "$out/losses.csv"
awk -F '\t' 'NR == FNR { known[$2]; known[$3 " " $4]; next }
    !($4 in known) && !($2 " " $3 in known) { print $4 "," $2 "," $3 }' \
    "$data/catalogue.tsv" "$work/intact.tsv" | sort > "$work/stray.csv"
echo 'name,size,sha256' | cat - "$work/stray.csv" > "$out/stray.csv"
awk -F ',' '{ files[$2]++; found[$2] += 0 }
    $3 == "recovered" { found[$2]++; bytes[$2] += $4 }
    END { for (team in files) print team "," files[team] "," found[team] "," bytes[team] + 0 }' \
    "$work/owned.csv" | sort > "$work/summary.csv"
echo 'owner,files,recovered,bytes' | cat - "$work/summary.csv" > "$out/summary.csv"

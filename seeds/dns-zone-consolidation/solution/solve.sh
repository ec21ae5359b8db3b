#!/bin/bash
# Parses the master files into one table, treats the errors in the agreed order, writes the zone.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
work=$(mktemp -d)
mkdir -p "$out"
serial=$(grep -o 'serial [0-9]*' "$data/CONSOLIDATION.md" | cut -d ' ' -f 2)

# 1. Parse: one line per record, in reading order: file, line, owner, TTL, type, data.
cat > "$work/parse.py" <<'PY'
import ipaddress
import re
import sys

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()]|;.*|[^\s();"]+')
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
NAMES = {"NS": [0], "CNAME": [0], "MX": [1], "SRV": [3], "SOA": [0, 1]}
data = sys.argv[1]


def absolute(name, origin):
    if name == "@":
        return origin
    name = name.lower()
    return name if name.endswith(".") else name + "." + origin.lstrip(".")


def seconds(text):
    """The seconds of a TTL, or None when the text is none."""
    if not re.fullmatch(r"(?:\d+[smhdw]?)+", text.lower()):
        return None
    parts = re.findall(r"(\d+)([smhdw]?)", text.lower())
    return sum(int(number) * UNITS[unit or "s"] for number, unit in parts)


def statements(path):
    """(line number, has an owner, tokens) of each entry; parentheses join lines."""
    tokens, depth = [], 0
    for number, line in enumerate(open(path), 1):
        if depth == 0:
            begin, has_owner, tokens = number, not line[:1].isspace(), []
        for token in TOKEN.findall(line):
            if token in "()":
                depth += 1 if token == "(" else -1
            elif token[0] != ";":
                tokens.append(token)
        if depth == 0 and tokens:
            yield begin, has_owner, tokens


def canonical(kind, words, origin):
    for place in NAMES.get(kind, []):
        words[place] = absolute(words[place], origin)
    if kind == "SOA":
        words[2:] = [str(seconds(word)) for word in words[2:]]
    if kind in ("A", "AAAA"):
        try:
            address = ipaddress.ip_address(words[0])
        except ValueError:
            return "bad"
        return str(address) if address.version == (4 if kind == "A" else 6) else "bad"
    return " ".join(words)


def read(name, origin, default):
    owner, last = None, None
    for line, has_owner, words in statements(f"{data}/{name}"):
        if words[0] == "$ORIGIN":
            origin = absolute(words[1], origin)
        elif words[0] == "$TTL":
            default = seconds(words[1])
        elif words[0] == "$INCLUDE":
            read(words[1], absolute(words[2], origin), default)
        else:
            if has_owner:
                owner = absolute(words.pop(0), origin)
            ttl = None
            while words[0].upper() == "IN" or seconds(words[0]) is not None:
                word = words.pop(0)
                ttl = ttl if word.upper() == "IN" else seconds(word)
            last = ttl if ttl is not None else default if default is not None else last
            kind = words[0].upper()
            print(name, line, owner, last, kind, canonical(kind, words[1:], origin), sep="\t")


for row in open(f"{data}/sources.txt"):
    if row[0] != "#":
        read(*row.split(), None)
PY
python3 -B "$work/parse.py" "$data" > "$work/records.tsv"

# 2. The SOA of the first file with the new serial; no other.
awk -F '\t' -v serial="$serial" '
    $5 == "SOA" { split($6, f, " "); print $3, $4, "IN SOA", f[1], f[2], serial, f[4], f[5], f[6], f[7]; exit }' \
    "$work/records.tsv" > "$work/soa"

# 3. Owners outside, broken addresses, duplicates.
awk -F '\t' -v OFS='\t' -v errors="$work/errors.tsv" '
    function drop(kind) { print kind, $1, $2, $3, $5 > errors }
    $5 == "SOA" { next }
    $3 != "depot.example." && $3 !~ /\.depot\.example\.$/ { drop("out-of-zone"); next }
    $6 == "bad" { drop("bad-address"); next }
    seen[$3, $5, $6]++ { drop("duplicate"); next }
    { print }' "$work/records.tsv" > "$work/kept.tsv"

# 4. Aliases, targets and TTLs; then the canonical order.
cat > "$work/consolidate.py" <<'PY'
import ipaddress
import sys

work, out, zone = sys.argv[1], sys.argv[2], ".depot.example."
records = [line.rstrip("\n").split("\t") for line in open(f"{work}/kept.tsv")]
errors = [line.rstrip("\n").split("\t") for line in open(f"{work}/errors.tsv")]


def report(kind, record):
    errors.append([kind, record[0], record[1], record[2], record[4]])


def drop(kind, chosen):
    """Report and remove these records."""
    for record in chosen:
        report(kind, record)
    return [record for record in records if record not in chosen]


def aliases():
    return [record for record in records if record[4] == "CNAME"]


taken = {record[2] for record in records if record[4] != "CNAME"}
clashes = []
for record in aliases():
    if record[2] in taken:
        clashes.append(record)
    taken.add(record[2])
records = drop("cname-conflict", clashes)

target = {record[2]: record[5] for record in aliases()}


def is_in_circle(name):
    seen, at = set(), target[name]
    while at in target and at not in seen:
        seen.add(at)
        at = target[at]
    return name in seen


records = drop("cname-loop", [record for record in aliases() if is_in_circle(record[2])])
while True:
    owners = {record[2] for record in records}
    dangling = [r for r in aliases() if r[5].endswith(zone) and r[5] not in owners]
    if not dangling:
        break
    records = drop("dangling-cname", dangling)

hosts = {record[2] for record in records if record[4] in ("A", "AAAA")}
smallest = {}
for record in records:
    points_to = record[5].split(" ")[-1]
    if record[4] in ("NS", "MX", "SRV") and points_to.endswith(zone) and points_to not in hosts:
        report("target-without-address", record)
    key = record[2], record[4]
    smallest[key] = min(int(record[3]), smallest.get(key, int(record[3])))

names = {}
records.sort(key=lambda r: (r[2].split(".")[::-1], r[4], r[5]))
with open(f"{work}/zone", "w") as lines:
    for record in records:
        ttl = smallest[record[2], record[4]]
        if int(record[3]) > ttl:
            report("ttl-conflict", record)
        print(record[2], ttl, "IN", record[4], record[5], file=lines)
        if record[4] in ("A", "AAAA"):
            names.setdefault(ipaddress.ip_address(record[5]), []).append(record[2])

with open(f"{out}/addresses.csv", "w") as table:
    print("address,names", file=table)
    for address in sorted(names, key=lambda a: (a.version, a)):
        print(address, " ".join(sorted(names[address])), sep=",", file=table)
with open(f"{work}/all-errors.tsv", "w") as table:
    table.writelines("\t".join(error) + "\n" for error in errors)
PY
python3 -B "$work/consolidate.py" "$work" "$out"

# 5. The deliverables.
cat "$work/soa" "$work/zone" > "$out/depot.example.zone"
echo 'kind,file,line,owner,type' > "$out/errors.csv"
sort -t $'\t' -k 2,2 -k 3,3n -k 1,1 "$work/all-errors.tsv" | tr '\t' ',' >> "$out/errors.csv"

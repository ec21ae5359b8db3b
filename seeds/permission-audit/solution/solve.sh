#!/bin/bash
# Turns the listing into a table, resolves policy and exceptions, derives findings and script.
set -euo pipefail
export LC_ALL=C

data=/app/data
out=/app/out
work=$(mktemp -d)
mkdir -p "$out"

# 1. The listing as a table: permissions, user, group, path. Links are out of scope.
awk '
    /^\/.*:$/ { folder = substr($0, 1, length($0) - 1); next }
    /^[-d][-rwxsStT]+[+.]? / {
        name = $0
        for (i = 1; i <= 6; i++) sub(/^[^ ]+ +/, "", name)
        sub(/^[^ ]+ /, "", name)
        print substr($1, 1, 10) "\t" $3 "\t" $4 "\t" folder "/" name
    }' "$data/listing.txt" > "$work/entries.tsv"

# 2. Numbers that the host knows become names: users and groups are numbered apart.
awk '$1 == "users" || $1 == "groups" { kind = $1 } NF == 2 && kind { print kind "\t" $2 "\t" $1 }' \
    "$data/accounts.txt" > "$work/numbers.tsv"
awk -F '\t' -v OFS='\t' '
    NR == FNR { name[$1, $2] = $3; next }
    ("users", $2) in name { $2 = name["users", $2] }
    ("groups", $3) in name { $3 = name["groups", $3] }
    { print }' "$work/numbers.tsv" "$work/entries.tsv" | sort -t $'\t' -k 4 > "$work/tree.tsv"

# 3. Policy and the exceptions that are still valid on the day of the capture.
grep -v '^#' "$data/policy.txt" > "$work/policy"
today=$(sed -n 's/^captured_at = \([0-9-]*\) .*/\1/p' "$data/audit.ini")
tail -n +2 "$data/exceptions.csv" | awk -F ',' -v today="$today" '$3 >= today { print $1 "\t" $2 }' > "$work/valid.tsv"

# 4. Each entry against the last line that matches it.
cat > "$work/assess.py" <<'PY'
import collections
import re
import shlex
import sys

work = sys.argv[1]


def pattern(text):
    parts = re.split(r"(\*\*|\*)", text)
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(p, re.escape(p)) for p in parts))


def octal(permissions):
    mode = 0
    for place, letter in enumerate(permissions[1:]):
        if letter in "rwxst":
            mode |= 0o400 >> place
        if letter in "sStT":
            mode |= 0o4000 >> place // 3
    return mode


policy = [line.split(None, 6) for line in open(f"{work}/policy").read().splitlines()]
policy = [(*line[:6], pattern(line[6])) for line in policy]
valid = [line.rstrip("\n").split("\t") for line in open(f"{work}/valid.tsv")]
valid = [(pattern(path), aspect) for path, aspect in valid]
entries, deviations, excepted = (collections.Counter() for _ in range(3))

with open(f"{work}/findings", "w") as findings, open(f"{work}/commands", "w") as commands:
    for line in open(f"{work}/tree.tsv"):
        permissions, owner, group, path = line.rstrip("\n").split("\t")
        kind = "d" if permissions[0] == "d" else "f"
        rule, _, want_owner, want_group, least, most, _ = [
            line for line in policy if line[1] == kind and line[6].fullmatch(path)
        ][-1]
        mode = octal(permissions)
        found = {"group": group, "mode": f"{mode:04o}", "owner": owner}
        need = {
            "group": group if want_group == "-" else want_group,
            "mode": f"{mode & int(most, 8) | int(least, 8):04o}",
            "owner": owner if want_owner == "-" else want_owner,
        }
        entries[rule] += 1
        for aspect in found:
            if need[aspect] == found[aspect]:
                continue
            if any(aspect == covered and p.fullmatch(path) for p, covered in valid):
                excepted[rule] += 1
                need[aspect] = found[aspect]
                continue
            deviations[rule] += 1
            findings.write(f"{path},{rule},{aspect},{found[aspect]},{need[aspect]}\n")
        has_chown = (owner, group) != (need["owner"], need["group"])
        if has_chown:
            commands.write(f"chown {need['owner']}:{need['group']} {shlex.quote(path)}\n")
            # A change of owner or group clears the set-id bits of a file.
            if kind == "f":
                mode &= ~0o4000 if not mode & 0o010 else ~0o6000
        if need["mode"] != f"{mode:04o}":
            commands.write(f"chmod {need['mode']} {shlex.quote(path)}\n")

with open(f"{work}/rules", "w") as rules:
    for rule, *_ in policy:
        rules.write(f"{rule},{entries[rule]},{deviations[rule]},{excepted[rule]}\n")
PY
python3 -B "$work/assess.py" "$work"

# 5. The deliverables.
echo 'path,rule,aspect,found,required' | cat - "$work/findings" > "$out/findings.csv"
printf '%s\n' '#!/bin/sh' 'set -eu' | cat - "$work/commands" > "$out/remediate.sh"
echo 'rule,entries,findings,excepted' | cat - "$work/rules" > "$out/rules.csv"

#!/bin/bash
# Repairs the rules by tracing what every step really opens, then builds from a clean tree.
set -euo pipefail
export LC_ALL=C

project=/app/project
out=/app/out
work=$(mktemp -d)
mkdir -p "$out" "$work/tree"
cp -r "$project/." "$work/tree"
cd "$work/tree"

# 1. A clean tree: nothing that was shipped in build/ may be taken for a result.
rm -rf build

# 2. The register block's address, as hardware signed it off.
base=$(awk '$1 ~ /^0x/ && $3 == "registers" { print $1 }' docs/memory-map.txt)
grep ' : registers ' Buildfile | awk -v base="$base" '$NF != base { print "wrong-address," $1 "," base }' > "$work/faults"
sed -i -E "s/( : registers [^ ]+) .*/\1 $base/" Buildfile

# 3. Targets that are included somewhere but made by no rule: the CRC table.
grep -rhoE '"build/[^"]+"' src | tr -d '"' | sort -u > "$work/included"
cut -d ' ' -f 1 Buildfile | sort > "$work/made"
comm -23 "$work/included" "$work/made" | sed 's/.*/missing-rule,&,-/' >> "$work/faults"
echo 'build/crc_table.h : src/crc.params : crc src/crc.params' >> Buildfile

# 4. Trace every step, whatever its rule lists, and write down what it opens.
cat > "$work/trace.py" <<'PY'
import glob
import sys

sys.path.insert(0, "tools")
import build

rules = build.parse(build.read_text("Buildfile"))
opened, made = {}, {}


def make(target):
    if target not in rules:
        return build.read_text(target)
    if target not in made:
        opened[target] = set()
        words = rules[target][1]
        if words[0] == "link":
            needs = ["build/" + path[4:-2] + ".i" for path in glob.glob("src/*.c")]
        else:
            needs = []

        def read(name):
            opened[target].add(name)
            return make(name)

        step = getattr(build.steps, "step_" + words[0])
        made[target] = step(read, sorted(needs), *words[1:])
    return made[target]


with open("Buildfile", "w") as repaired, open(sys.argv[1], "a") as faults:
    for target, (listed, words) in rules.items():
        make(target)
        repaired.write(f"{target} : {' '.join(sorted(opened[target]))} : {' '.join(words)}\n")
        for name in set(listed) - opened[target]:
            faults.write(f"unused-dependency,{target},{name}\n")
        for name in opened[target] - set(listed):
            faults.write(f"missing-dependency,{target},{name}\n")
PY
python3 -B "$work/trace.py" "$work/faults"

# 5. Build with the repaired rules.
python3 -B tools/build.py --plan > "$out/build-order.txt"
python3 -B tools/build.py > "$work/build.log"
sort Buildfile > "$out/Buildfile"
sort "$out/build-order.txt" | xargs sha256sum > "$out/checksums.txt"

# 6. What was shipped and is not what these sources give.
for shipped in "$project"/build/*; do
    name=build/$(basename "$shipped")
    cmp -s "$shipped" "$name" || echo "stale,$name,-" >> "$work/faults"
done

# 7. The report.
echo 'kind,target,detail' > "$out/faults.csv"
sort "$work/faults" >> "$out/faults.csv"

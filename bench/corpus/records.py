"""Sound work on binary records, codes, dependencies and stock; and a program that is delivered."""

from __future__ import annotations

import base64
import json
import struct
from random import Random

from bench.corpus.layout import Work
from bench.corpus.writing import (
    GOODS,
    NAMES,
    PLACES,
    WORDS,
    as_csv,
    as_json,
    as_lines,
    python,
    some,
)


def binary_records(rng: Random) -> Work:
    """Records with lengths and check bytes out of a binary file."""
    rows, data = [], b"RECS"
    for n in range(rng.randint(30, 50)):
        name, value = f"{rng.choice(WORDS)}-{n}", rng.randint(-(2**31), 2**31 - 1)
        body = struct.pack(">HiB", n, value, len(name)) + name.encode()
        check = sum(body) % 256
        if rng.random() < 0.15:
            check = (check + rng.randint(1, 255)) % 256
        else:
            rows.append((n, name, value))
        data += body + bytes([check])
    return Work(
        title="Records of a binary file",
        instruction="""\
`/app/data/records.bin` begins with the four bytes `RECS`. Then come records: number (2 bytes,
unsigned), value (4 bytes, signed), both big-endian, length of the name (1 byte), the name in ASCII,
and a check byte: the sum of all bytes of the record before it, modulo 256. Write
`/app/out/records.csv` with the header `number,name,value`: all records whose check byte is right,
in order of the file.
""",
        data={"records.bin": data},
        solve="mkdir -p out && python3 /solution/records.py data/records.bin out/records.csv",
        helpers={
            "records.py": b"""\
import csv
import struct
import sys

data = open(sys.argv[1], "rb").read()
at = 4
with open(sys.argv[2], "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(["number", "name", "value"])
    while at < len(data):
        number, value, length = struct.unpack_from(">HiB", data, at)
        end = at + 7 + length
        if sum(data[at:end]) % 256 == data[end]:
            writer.writerow([number, data[at + 7:end].decode("ascii"), value])
        at = end + 1
"""
        },
        outputs={"/app/out/records.csv": as_csv([("number", "name", "value"), *rows])},
    )


def start_order(rng: Random) -> Work:
    """An order of starting that follows dependencies; ties by name make it the only one."""
    names = sorted(some(rng, WORDS, 14, 18))
    rank = rng.sample(names, len(names))
    needs = {
        name: sorted(rng.sample(rank[: rank.index(name)], min(rank.index(name), rng.randint(0, 3))))
        for name in names
    }
    order: list[str] = []
    while len(order) < len(names):
        free = [n for n in names if n not in order and all(d in order for d in needs[n])]
        order.append(free[0])
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[d] for d in needs[name]), default=0)
    return Work(
        title="In which order to start",
        instruction="""\
`/app/data/units/<name>.unit` may hold lines like `After=one two`: the units that must have been
started before. Write `/app/out/order.txt`: all names, one per line, in the order of starting:
always the first name, in order of text, of those that may be started and were not. Write
`/app/out/depth.json`: for every name 1 where it waits for nothing, else 1 more than the largest
depth among those that it waits for.
""",
        data={
            f"units/{n}.unit": as_lines(
                ["[Unit]", f"Description={n.title()}", *([f"After={' '.join(d)}"] if d else [])]
            )
            for n, d in needs.items()
        },
        solve="mkdir -p out\n"
        + python("""
import glob, json, os
needs = {}
for path in glob.glob("data/units/*.unit"):
    name = os.path.basename(path)[:-5]
    needs[name] = []
    for line in open(path):
        if line.startswith("After="):
            needs[name] += line[6:].split()
order, depth = [], {}
while len(order) < len(needs):
    free = min(n for n in needs if n not in depth and all(d in depth for d in needs[n]))
    depth[free] = 1 + max([depth[d] for d in needs[free]] or [0])
    order.append(free)
with open("out/order.txt", "w") as target:
    print(*order, sep="\\n", file=target)
with open("out/depth.json", "w") as target:
    json.dump(depth, target)
"""),
        outputs={"/app/out/order.txt": as_lines(order), "/app/out/depth.json": as_json(depth)},
    )


def coded_messages(rng: Random) -> Work:
    """Messages in several codes, told apart by a prefix."""
    texts = [
        f"{rng.choice(NAMES)} met {rng.choice(NAMES)} in {rng.choice(PLACES)}" for _ in range(12)
    ]
    lines = []
    for text in texts:
        kind = rng.choice(("b64", "hex", "rev"))
        coded = {
            "b64": base64.b64encode(text.encode()).decode(),
            "hex": text.encode().hex(),
            "rev": text[::-1],
        }[kind]
        lines.append(f"{kind}:{coded}")
    return Work(
        title="Messages in three codes",
        instruction="""\
Decode `/app/data/messages.txt` into `/app/out/messages.txt`, line by line. `b64:` stands before
Base64, `hex:` before hexadecimal, and `rev:` before a text that was written backwards.
""",
        data={"messages.txt": as_lines(lines)},
        solve="""\
mkdir -p out
while IFS=: read -r kind text; do
    case $kind in
        b64) printf '%s' "$text" | base64 -d ;;
        hex) printf "$(printf '%s' "$text" | sed 's/../\\\\x&/g')" ;;
        rev) printf '%s' "$text" | rev ;;
    esac
    echo
done < data/messages.txt > out/messages.txt
""",
        packages=("python3", "util-linux", "coreutils"),
        outputs={"/app/out/messages.txt": as_lines(texts)},
        is_embedded=rng.random() < 0.5,
    )


def first_in_first_out(rng: Random) -> Work:
    """Stock sold in the order in which it came, and what that earned."""
    moves, stock, sold = [], {g: [] for g in GOODS[:4]}, []  # type: list[tuple[object, ...]], dict[str, list[list[int]]], list[tuple[object, ...]]
    for n in range(rng.randint(60, 80)):
        good, price = rng.choice(GOODS[:4]), rng.randint(10, 99)
        there = sum(count for count, _ in stock[good])
        if there > 5 and rng.random() < 0.6:
            count = rng.randint(1, there)
            moves.append((n, "out", good, count, price))
            left, cost = count, 0
            while left:
                taken = min(left, stock[good][0][0])
                cost += taken * stock[good][0][1]
                stock[good][0][0] -= taken
                left -= taken
                if not stock[good][0][0]:
                    stock[good].pop(0)
            sold.append((n, good, count * price - cost))
        else:
            count = rng.randint(1, 20)
            moves.append((n, "in", good, count, price))
            stock[good].append([count, price])
    rest = {
        g: {"pieces": sum(c for c, _ in s), "worth": sum(c * p for c, p in s)}
        for g, s in stock.items()
    }
    return Work(
        title="First in, first out",
        instruction="""\
`/app/data/moves.csv` (`move,kind,article,pieces,price`) lists what came `in` (bought at `price`
each) and went `out` (sold at `price` each). What is sold is always the oldest stock of that
article. Write `/app/out/profit.csv` with the header `move,article,profit`: for each `out` in order
what it earned minus what its pieces had cost. Write `/app/out/stock.json`: per article what is
left, as an object with `pieces` and `worth` (at the prices paid); articles without a rest have
zeros.
""",
        data={"moves.csv": as_csv([("move", "kind", "article", "pieces", "price"), *moves])},
        solve="mkdir -p out\n"
        + python("""
import csv, json
from collections import deque
stock, lines = {}, []
for row in csv.DictReader(open("data/moves.csv")):
    pieces, price = int(row["pieces"]), int(row["price"])
    shelf = stock.setdefault(row["article"], deque())
    if row["kind"] == "in":
        shelf.extend([price] * pieces)
    else:
        cost = sum(shelf.popleft() for _ in range(pieces))
        lines.append((row["move"], row["article"], pieces * price - cost))
with open("out/profit.csv", "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(("move", "article", "profit"))
    writer.writerows(lines)
with open("out/stock.json", "w") as target:
    json.dump({a: {"pieces": len(s), "worth": sum(s)} for a, s in stock.items()}, target)
"""),
        outputs={
            "/app/out/profit.csv": as_csv([("move", "article", "profit"), *sold]),
            "/app/out/stock.json": as_json(
                {g: rest[g] for g in rest if any(m[2] == g for m in moves)}
            ),
        },
    )


_PROGRAM = """

import subprocess


def run(words):
    done = subprocess.run(
        ["/bin/sh", "/app/out/%(name)s"], input=words, capture_output=True, timeout=20,
        user="nobody", text=True, cwd="/", check=False,
    )
    return done.stdout


def check_the_program():
    for given, wanted in json.loads(%(cases)r):
        assert run(given).split() == wanted, "given %%r" %% given
"""


def delivered_program(rng: Random) -> Work:
    """A small program is what is delivered; it is run on other input than the solver saw."""
    factor = rng.choice((2, 3, 5))
    name = f"{rng.choice(WORDS)}.sh"

    def answer(numbers: list[int]) -> list[str]:
        kept = [n * factor for n in numbers if n % factor == 1]
        return [str(n) for n in sorted(kept)]

    cases = []
    for _ in range(8):
        numbers = [rng.randint(0, 999) for _ in range(rng.randint(3, 12))]
        cases.append(("".join(f"{n}\n" for n in numbers), answer(numbers)))
    shown = [rng.randint(0, 999) for _ in range(30)]
    return Work(
        title="A small filter",
        instruction=f"""\
Write a shell script `/app/out/{name}` (run as `sh {name}`, as a user without rights) that reads
whole numbers from its standard input, one per line, keeps those that leave 1 when divided by
{factor}, multiplies them by {factor}, and prints them in numerical order, one per line. Run it on
`/app/data/numbers.txt` and save what it prints as `/app/out/numbers.txt`.
""",
        data={"numbers.txt": as_lines(shown)},
        packages=("python3", "mawk"),
        solve=f"""\
mkdir -p out
cat > out/{name} <<'PROGRAM'
awk '$1 % {factor} == 1 {{ print $1 * {factor} }}' | sort -n
PROGRAM
chmod 755 out/{name}
sh out/{name} < data/numbers.txt > out/numbers.txt
""",
        outputs={"/app/out/numbers.txt": as_lines(answer(shown))},
        more_checks=_PROGRAM % {"name": name, "cases": json.dumps(cases)},
    )


STYLES = (
    binary_records,
    start_order,
    coded_messages,
    first_in_first_out,
    delivered_program,
)
"""From a random state to a sound work."""

"""Sound work on tables and records."""

from __future__ import annotations

import json
from random import Random

from bench.corpus.layout import Work
from bench.corpus.writing import (
    GOODS,
    NAMES,
    PLACES,
    as_csv,
    as_json,
    as_lines,
    as_tsv,
    python,
    some,
    stamp,
)


def region_totals(rng: Random) -> Work:
    """Sums by group, in cents, of a table of sales."""
    places = some(rng, PLACES, 5, 8)
    rows = [
        (n, rng.choice(places), rng.choice(GOODS), rng.randint(1, 9), rng.randint(100, 9999))
        for n in range(1, rng.randint(60, 120))
    ]
    totals: dict[str, dict[str, int]] = {}
    for _, place, _, count, cents in rows:
        entry = totals.setdefault(place, {"orders": 0, "cents": 0})
        entry["orders"] += 1
        entry["cents"] += count * cents
    return Work(
        title="Totals per region",
        instruction="""\
`/app/data/sales.csv` has the columns `order,region,article,count,cents`: `cents` is the price of
one piece. Write `/app/out/totals.json`: an object that gives for every region an object with the
keys `orders` (how many lines the region has) and `cents` (what all its orders cost together).
""",
        data={"sales.csv": as_csv([("order", "region", "article", "count", "cents"), *rows])},
        solve="mkdir -p out\n"
        + python("""
import csv, json
totals = {}
for row in csv.DictReader(open("data/sales.csv")):
    entry = totals.setdefault(row["region"], {"orders": 0, "cents": 0})
    entry["orders"] += 1
    entry["cents"] += int(row["count"]) * int(row["cents"])
json.dump(totals, open("out/totals.json", "w"), indent=1, sort_keys=True)
"""),
        outputs={"/app/out/totals.json": as_json(totals)},
    )


def joined_orders(rng: Random) -> Work:
    """Two tables joined with join(1) or Python; the result has a stated order."""
    clients = {f"c{n:03d}": rng.choice(NAMES) for n in range(rng.randint(12, 20))}
    orders = [
        (f"o{n:04d}", rng.choice([*clients, "c999"]), rng.randint(5, 500))
        for n in range(rng.randint(40, 70))
    ]
    joined = sorted((clients[c], o, a) for o, c, a in orders if c in clients)
    return Work(
        title="Orders with the names of clients",
        instruction="""\
Join `/app/data/orders.csv` (`order,client,amount`) with `/app/data/clients.csv` (`client,name`).
Write `/app/out/joined.csv` with the header `name,order,amount`, sorted by name, then by order.
Orders of unknown clients go to `/app/out/unknown.txt`: their numbers, one per line, sorted.
""",
        data={
            "orders.csv": as_csv([("order", "client", "amount"), *orders]),
            "clients.csv": as_csv([("client", "name"), *clients.items()]),
        },
        solve="""\
export LC_ALL=C
mkdir -p out
work=$(mktemp -d)
tail -n +2 data/clients.csv | sort -t, -k1,1 > "$work/clients"
tail -n +2 data/orders.csv | sort -t, -k2,2 > "$work/orders"
{ echo name,order,amount
  join -t, -1 2 -2 1 -o 2.2,1.1,1.3 "$work/orders" "$work/clients" | sort -t, -k1,1 -k2,2
} > out/joined.csv
join -t, -v 1 -1 2 -2 1 -o 1.1 "$work/orders" "$work/clients" | sort > out/unknown.txt
rm -r "$work"
""",
        outputs={
            "/app/out/joined.csv": as_csv([("name", "order", "amount"), *joined]),
            "/app/out/unknown.txt": as_lines(sorted(o for o, c, _ in orders if c not in clients)),
        },
    )


def latest_contacts(rng: Random) -> Work:
    """Duplicates by mail address in any case; the newest record stays."""
    people = [f"{name.lower()}@{place}.example" for name in NAMES[:14] for place in PLACES[:1]]
    rows = []
    for n in range(rng.randint(40, 60)):
        mail = rng.choice(people)
        rows.append((mail.upper() if rng.random() < 0.3 else mail, f"+49-{n:05d}", stamp(n * 611)))
    rng.shuffle(rows)
    newest: dict[str, tuple[str, str]] = {}
    for mail, phone, at in rows:
        if mail.lower() not in newest or newest[mail.lower()][1] < at:
            newest[mail.lower()] = (phone, at)
    kept = [(mail, *newest[mail]) for mail in sorted(newest)]
    return Work(
        title="One record per contact",
        instruction="""\
In `/app/data/contacts.csv` (`mail,phone,updated`) the same mail address stands several times, in
capitals or not. Keep for every address the record with the latest `updated`. Write
`/app/out/contacts.csv` with the same header: addresses in lower case, sorted by address.
""",
        data={"contacts.csv": as_csv([("mail", "phone", "updated"), *rows])},
        solve="mkdir -p out\n"
        + python("""
import csv
newest = {}
with open("data/contacts.csv", newline="") as source:
    for row in csv.DictReader(source):
        row["mail"] = row["mail"].lower()
        if row["mail"] not in newest or newest[row["mail"]]["updated"] < row["updated"]:
            newest[row["mail"]] = row
with open("out/contacts.csv", "w", newline="") as target:
    writer = csv.DictWriter(target, ["mail", "phone", "updated"], lineterminator="\\n")
    writer.writeheader()
    writer.writerows(newest[mail] for mail in sorted(newest))
"""),
        outputs={"/app/out/contacts.csv": as_csv([("mail", "phone", "updated"), *kept])},
    )


def latency_ranks(rng: Random) -> Work:
    """Nearest-rank percentiles per endpoint from JSON lines, some of them broken."""
    ends = [f"/{place}" for place in some(rng, PLACES, 5, 7)]
    lines: list[str] = []
    times: dict[str, list[int]] = {end: [] for end in ends}
    for n in range(rng.randint(100, 160)):
        end, taken = rng.choice(ends), rng.randint(3, 900)
        if rng.random() < 0.05:
            lines.append(f'{{"endpoint": "{end}", "ms": ')
            continue
        lines.append(json.dumps({"n": n, "endpoint": end, "ms": taken}))
        times[end].append(taken)
    ranks = {
        end: {f"p{p}": sorted(t)[-(-p * len(t) // 100) - 1] for p in (50, 90, 99)} | {"n": len(t)}
        for end, t in times.items()
        if t
    }
    return Work(
        title="Percentiles of latencies",
        instruction="""\
`/app/data/requests.jsonl` holds one JSON object per line with `endpoint` and `ms`; some lines are
cut off and are to be skipped. Write `/app/out/ranks.json`: for every endpoint an object with `n`
(its requests) and `p50`, `p90`, `p99`: the nearest-rank percentiles of `ms`, that is the value at
position ceil(p/100 * n) of the sorted values, counted from 1.
""",
        data={"requests.jsonl": as_lines(lines)},
        solve="mkdir -p out\n"
        + python("""
import json
times = {}
for line in open("data/requests.jsonl"):
    try:
        entry = json.loads(line)
    except ValueError:
        continue
    times.setdefault(entry["endpoint"], []).append(entry["ms"])
ranks = {}
for endpoint, values in times.items():
    values.sort()
    ranks[endpoint] = {"n": len(values)}
    for p in (50, 90, 99):
        ranks[endpoint]["p%d" % p] = values[-(-p * len(values) // 100) - 1]
with open("out/ranks.json", "w") as target:
    json.dump(ranks, target)
"""),
        outputs={"/app/out/ranks.json": as_json(ranks)},
    )


def fixed_width(rng: Random) -> Work:
    """Columns of fixed width into a table, with cut and sed or with Python."""
    rows = [
        (f"{n:06d}", rng.choice(NAMES), rng.choice(PLACES), rng.randint(0, 99999))
        for n in range(rng.randint(25, 45))
    ]
    text = as_lines(f"{a}{b:<12}{c:<10}{d:>8}" for a, b, c, d in rows)
    by_shell = """\
mkdir -p out
{ printf 'number\\tname\\tplace\\tpoints\\n'
  sed -E -e 's/^(.{6})(.{12})(.{10})(.{8})$/\\1\\t\\2\\t\\3\\t\\4/' \\
      -e 's/ +\\t/\\t/g; s/\\t +/\\t/g' data/cards.txt
} > out/cards.tsv
"""
    by_python = "mkdir -p out\n" + python("""
with open("out/cards.tsv", "w") as target:
    print("number", "name", "place", "points", sep="\\t", file=target)
    for line in open("data/cards.txt"):
        parts = line[:6], line[6:18], line[18:28], line[28:36]
        print(*(part.strip() for part in parts), sep="\\t", file=target)
""")
    return Work(
        title="Cards of fixed width",
        instruction="""\
Every line of `/app/data/cards.txt` holds four columns: characters 1-6 the number, 7-18 the name,
19-28 the place, 29-36 the points. Write `/app/out/cards.tsv`: a header line with `number`, `name`,
`place`, `points`, then one line per card in the same order, separated by tabs, without padding.
""",
        data={"cards.txt": text},
        solve=rng.choice((by_shell, by_python)),
        outputs={"/app/out/cards.tsv": as_tsv([("number", "name", "place", "points"), *rows])},
    )


def wide_table(rng: Random) -> Work:
    """A long table made wide, with zeros where nothing was counted."""
    places, months = sorted(some(rng, PLACES, 4, 6)), [f"2025-{m:02d}" for m in range(1, 7)]
    rows = [
        (rng.choice(places), rng.choice(months), rng.randint(1, 40))
        for _ in range(rng.randint(40, 80))
    ]
    wide = [
        (place, *(sum(c for p, m, c in rows if (p, m) == (place, month)) for month in months))
        for place in sorted({place for place, _, _ in rows})
    ]
    used = [month for month in months if any(m == month for _, m, _ in rows)]
    wide = [(row[0], *(row[1 + months.index(m)] for m in used)) for row in wide]
    return Work(
        title="Counts by place and month",
        instruction="""\
`/app/data/counts.csv` has the columns `place,month,count`, several lines for some pairs. Write
`/app/out/wide.csv`: the header is `place` and then every month of the data in order; each place
is one line, sorted, with the sum of its counts for each month (0 where there is none).
""",
        data={"counts.csv": as_csv([("place", "month", "count"), *rows])},
        solve="mkdir -p /app/out && python3 /solution/widen.py /app/data/counts.csv > out/wide.csv",
        helpers={
            "widen.py": b"""\
import csv
import sys
from collections import Counter

sums = Counter()
with open(sys.argv[1], newline="") as source:
    for row in csv.DictReader(source):
        sums[row["place"], row["month"]] += int(row["count"])
months = sorted({month for _, month in sums})
writer = csv.writer(sys.stdout, lineterminator="\\n")
writer.writerow(["place", *months])
for place in sorted({place for place, _ in sums}):
    writer.writerow([place, *(sums[place, month] for month in months)])
"""
        },
        outputs={"/app/out/wide.csv": as_csv([("place", *used), *wide])},
    )


def reconciled(rng: Random) -> Work:
    """Two ledgers compared: what is missing on either side, and what differs."""
    bank = {f"t{n:04d}": rng.randint(-9000, 9000) for n in range(rng.randint(40, 60))}
    books = dict(bank)
    for key in rng.sample(list(books), 12):
        if rng.random() < 0.5:
            del books[key]
        else:
            books[key] += rng.choice((-100, 1, 90))
    for n in range(5):
        books[f"x{n:04d}"] = rng.randint(1, 900)
    report = {
        "only_bank": sorted(bank.keys() - books.keys()),
        "only_books": sorted(books.keys() - bank.keys()),
        "different": [
            {"id": key, "bank": bank[key], "books": books[key]}
            for key in sorted(bank.keys() & books.keys())
            if bank[key] != books[key]
        ],
        "difference": sum(books.values()) - sum(bank.values()),
    }
    return Work(
        title="Bank and books",
        instruction="""\
Compare `/app/data/bank.csv` with `/app/data/books.csv` (both `id,cents`). Write
`/app/out/report.json` with the keys `only_bank` and `only_books` (sorted lists of ids that the
other file lacks), `different` (a list of objects with `id`, `bank`, `books`, sorted by id: the
amounts of ids that both have with other amounts), and `difference`: the sum of all books minus the
sum of the bank.
""",
        data={
            "bank.csv": as_csv([("id", "cents"), *bank.items()]),
            "books.csv": as_csv([("id", "cents"), *sorted(books.items(), reverse=True)]),
        },
        solve="mkdir -p out\n"
        + python("""
import csv, json
def read(name):
    with open("data/" + name, newline="") as source:
        return {row["id"]: int(row["cents"]) for row in csv.DictReader(source)}
bank, books = read("bank.csv"), read("books.csv")
report = {
    "only_bank": sorted(set(bank) - set(books)),
    "only_books": sorted(set(books) - set(bank)),
    "different": [{"id": key, "bank": bank[key], "books": books[key]}
                  for key in sorted(set(bank) & set(books)) if bank[key] != books[key]],
    "difference": sum(books.values()) - sum(bank.values()),
}
json.dump(report, open("out/report.json", "w"))
"""),
        outputs={"/app/out/report.json": as_json(report)},
    )


STYLES = (
    region_totals,
    joined_orders,
    latest_contacts,
    latency_ranks,
    fixed_width,
    wide_table,
    reconciled,
)
"""From a random state to a sound work."""

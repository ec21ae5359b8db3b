"""Sound work with databases, repositories, builds, services and binary formats."""

from __future__ import annotations

import json
import sqlite3
from random import Random

from bench.corpus.gitting import Repository
from bench.corpus.layout import Work
from bench.corpus.writing import (
    GOODS,
    NAMES,
    PLACES,
    WORDS,
    as_csv,
    as_json,
    as_lines,
    as_tsv,
    python,
    some,
)


def shop_database(rng: Random) -> Work:
    """Questions to a SQLite database."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE client (id INTEGER PRIMARY KEY, name TEXT, place TEXT);"
        "CREATE TABLE sale (client INTEGER, article TEXT, cents INTEGER);"
    )
    names = some(rng, NAMES, 10, 14)
    clients = [(n, name, rng.choice(PLACES)) for n, name in enumerate(names, 1)]
    sales = [
        (rng.randint(1, len(names) - 2), rng.choice(GOODS), rng.randint(100, 9000))
        for _ in range(rng.randint(60, 90))
    ]
    database.executemany("INSERT INTO client VALUES (?, ?, ?)", clients)
    database.executemany("INSERT INTO sale VALUES (?, ?, ?)", sales)
    database.commit()
    spent = {n: sum(c for k, _, c in sales if k == n) for n, _, _ in clients}
    best = sorted(
        ((spent[n], name, place) for n, name, place in clients), key=lambda r: (-r[0], r[1])
    )
    return Work(
        title="Questions to a shop's database",
        instruction="""\
`/app/data/shop.db` is a SQLite database with the tables `client` (`id`, `name`, `place`) and `sale`
(`client`, `article`, `cents`). Write `/app/out/spent.csv` with the header `name,place,cents`: every
client with the sum of all its sales (0 without any), the largest sum first, equal ones by name.
Write `/app/out/idle.txt`: the names of clients without a sale, one per line, sorted.
""",
        data={"shop.db": database.serialize()},
        solve="mkdir -p out && python3 /solution/spent.py",
        helpers={
            "spent.py": b"""\
import csv
import sqlite3
from collections import Counter

shop = sqlite3.connect("file:/app/data/shop.db?mode=ro&immutable=1", uri=True)
spent = Counter()
for client, cents in shop.execute("SELECT client, cents FROM sale"):
    spent[client] += cents
clients = shop.execute("SELECT id, name, place FROM client")
rows = [(name, place, spent[number]) for number, name, place in clients]
rows.sort(key=lambda row: (-row[2], row[0]))
with open("out/spent.csv", "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(["name", "place", "cents"])
    writer.writerows(rows)
with open("out/idle.txt", "w") as target:
    target.writelines(name + "\\n" for name, _, total in sorted(rows) if total == 0)
"""
        },
        outputs={
            "/app/out/spent.csv": as_csv(
                [("name", "place", "cents"), *((n, p, c) for c, n, p in best)]
            ),
            "/app/out/idle.txt": as_lines(sorted(n for c, n, _ in best if c == 0)),
        },
    )


def commit_report(rng: Random) -> Work:
    """Who changed which file of a git repository, how often."""
    repository, parent, at = Repository(), "", 1_740_000_000
    people = some(rng, NAMES, 3, 4)
    files = {f"{w}.txt": b"first\n" for w in some(rng, WORDS, 4, 5)}
    rows = []
    changed: dict[str, int] = {}
    for n in range(rng.randint(9, 13)):
        who, name = rng.choice(people), rng.choice(sorted(files))
        if n:
            files[name] += f"line {n}\n".encode()
            changed[name] = changed.get(name, 0) + 1
        author = f"{who} <{who.lower()}@corpus.example>"
        at += rng.randint(600, 90_000)
        subject = f"{rng.choice(WORDS)} {n}"
        parent = repository.commit(files, subject, at, parent, author)
        rows.append((parent, who, subject))
    repository.refs["refs/heads/main"] = parent
    return Work(
        title="A report on commits",
        instruction="""\
`/app/data/repo.git` is a bare git repository. Write `/app/out/commits.tsv`: all commits of `main`,
the oldest first, one per line: full hash, author's name, subject, separated by tabs. Write
`/app/out/changes.json`: for every file that was changed after the first commit the number of
commits that changed it (the first commit, which adds all of them, does not count).
""",
        data={f"repo.git/{path}": data for path, data in repository.files().items()},
        build=("RUN mkdir -p /app/data/repo.git/refs/tags",),
        packages=("python3", "git"),
        solve="""\
mkdir -p out
log() { git -c safe.directory='*' --git-dir=/app/data/repo.git log --reverse "$@" main; }
log --format='%H%x09%an%x09%s' > out/commits.tsv
log --format= --name-only --diff-filter=M | python3 -c '
import collections, json, sys
names = [line.strip() for line in sys.stdin if line.strip()]
json.dump(collections.Counter(names), sys.stdout)' > out/changes.json
""",
        outputs={
            "/app/out/commits.tsv": as_tsv(rows),
            "/app/out/changes.json": as_json(changed),
        },
    )


def repaired_build(rng: Random) -> Work:
    """A Makefile with a wrong rule, and what it builds."""
    parts = {
        w: as_lines(f"{w} {rng.choice(GOODS)} {n}" for n in range(3))
        for w in sorted(some(rng, WORDS, 4, 6))
    }
    names = list(parts)
    rules = [
        f"build/{n}.up: src/{n}.txt\n\tmkdir -p build\n\ttr a-z A-Z < $< > $@\n" for n in names
    ]
    broken = rules.copy()
    broken[1] = broken[1].replace(f"src/{names[1]}.txt", f"src/{names[1]}.text")
    broken[2] = broken[2].replace("tr a-z A-Z", "tr a-z a-z")
    head = (
        f"all: /app/out/book.txt\n\n/app/out/book.txt: {' '.join(f'build/{n}.up' for n in names)}\n"
    )
    head += "\tmkdir -p /app/out\n\tcat $^ > $@\n\n"
    return Work(
        title="A build to be repaired",
        instruction="""\
`make` in `/app/data/book` shall build `/app/out/book.txt`: the files of `src/` in order of their
names, all in capitals, one after another. The Makefile has mistakes. Repair it and build the book.
""",
        data={
            "book/Makefile": (head + "\n".join(broken)).encode(),
            **{f"book/src/{name}.txt": data for name, data in parts.items()},
        },
        packages=("python3", "make"),
        solve=f"""\
cd /app/data/book
sed -i 's/{names[1]}[.]text/{names[1]}.txt/; s/tr a-z a-z/tr a-z A-Z/' Makefile
make -s
""",
        outputs={"/app/out/book.txt": b"".join(parts.values()).upper()},
    )


_SERVER = b'''\
"""Answers GET /<key> with the value of that key in a JSON file: server.py FILE PORT."""
import http.server
import json
import sys

VALUES = json.load(open(sys.argv[1]))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        value = VALUES.get(self.path[1:])
        self.send_response(404 if value is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *words):
        pass


http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
'''


def started_service(rng: Random) -> Work:
    """A service that has to run while it is judged; its user may not touch what judges."""
    values = {w: rng.randint(1, 999) for w in some(rng, WORDS, 8, 12)}
    port = rng.randint(8100, 8900)
    pairs = "; ".join(f"{key}={value}" for key, value in values.items())
    return Work(
        title="A service in the background",
        instruction=f"""\
`/app/data/values.txt` holds pairs like `key=value`, separated by `;` and spaces. Write them to
`/app/out/values.json` as an object with numbers, then start `/app/data/server.py` in the background
with that file and the port {port}: it has to answer on 127.0.0.1 when you are done.
""",
        data={"values.txt": f"{pairs}\n".encode(), "server.py": _SERVER},
        is_shared=True,
        agent_user="nobody",
        solve=python("""
import json
pairs = open("/app/data/values.txt").read().strip().split(";")
values = {key.strip(): int(value) for key, value in (pair.split("=") for pair in pairs)}
with open("/app/out/values.json", "w") as target:
    json.dump(values, target)
""")
        + f"""
setsid python3 /app/data/server.py /app/out/values.json {port} </dev/null >/dev/null 2>&1 &
for _ in $(seq 50); do
    (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && exit 0
    sleep 0.1
done
exit 1
""",
        outputs={"/app/out/values.json": as_json(values)},
        more_checks=f"""

import urllib.request


def check_it_answers():
    for key, value in json.loads({json.dumps(json.dumps(values))}).items():
        with urllib.request.urlopen("http://127.0.0.1:{port}/" + key, timeout=5) as answer:
            assert json.load(answer) == value, key
""",
    )


STYLES = (shop_database, commit_report, repaired_build, started_service)
"""From a random state to a sound work."""

"""Sound work on logs and times."""

from __future__ import annotations

import gzip
from random import Random

from bench.corpus.layout import Work
from bench.corpus.writing import NAMES, PLACES, WORDS, as_csv, as_json, as_lines, as_tsv, python

from bench.corpus.writing import some, stamp  # isort: skip


def busiest_clients(rng: Random) -> Work:
    """A count by address with awk and sort, in a stated order."""
    addresses = [f"10.{rng.randint(0, 9)}.{rng.randint(0, 99)}.{n}" for n in range(2, 30)]
    hits = [
        (rng.choice(addresses), rng.choice(WORDS), rng.choice((200, 200, 200, 304, 404, 500)))
        for _ in range(rng.randint(200, 300))
    ]
    lines = [
        f'{a} - - [01/Mar/2025:10:{n // 60:02d}:{n % 60:02d} +0000] "GET /{w} HTTP/1.1" {s} {n * 7}'
        for n, (a, w, s) in enumerate(hits)
    ]
    least = rng.choice((7, 8, 9))
    counts: dict[str, int] = {}
    for address, _, _ in hits:
        counts[address] = counts.get(address, 0) + 1
    kept = sorted((-n, a) for a, n in counts.items() if n >= least)
    errors = sorted({w for _, w, s in hits if s >= 500})
    return Work(
        title="The busiest clients",
        instruction=f"""\
From the web server's log `/app/data/access.log` make `/app/out/clients.tsv`: for every client
address with at least {least} requests a line with the number of requests, a tab and the address;
most requests first, equal ones sorted by address as text. And `/app/out/errors.txt`: the paths
that were answered with a status of 500 or above, without the leading slash, each once, sorted.
""",
        data={"access.log": as_lines(lines)},
        packages=("python3", "gawk"),
        solve=f"""\
export LC_ALL=C
mkdir -p out
awk '{{ n[$1]++ }} END {{ for (a in n) if (n[a] >= {least}) print n[a] "\\t" a }}' data/access.log |
    sort -k1,1nr -k2,2 > out/clients.tsv
awk '$9 >= 500 {{ sub("^/", "", $7); print $7 }}' data/access.log | sort -u > out/errors.txt
""",
        outputs={
            "/app/out/clients.tsv": as_tsv([(-n, a) for n, a in kept]),
            "/app/out/errors.txt": as_lines(errors),
        },
    )


def error_bursts(rng: Random) -> Work:
    """Runs of errors that follow each other closely."""
    gap, at, events = rng.choice((20, 30, 45)), 0, []
    for _ in range(rng.randint(90, 130)):
        at += rng.choice((3, 8, 15, 25, 40, 200))
        events.append((at, "ERROR" if rng.random() < 0.6 else "INFO", rng.choice(WORDS)))
    bursts: list[list[int]] = []
    for when, level, _ in events:
        if level == "ERROR":
            if bursts and when - bursts[-1][-1] <= gap:
                bursts[-1].append(when)
            else:
                bursts.append([when])
    found = [(stamp(b[0]), stamp(b[-1]), len(b)) for b in bursts if len(b) >= 3]
    return Work(
        title="Bursts of errors",
        instruction=f"""\
`/app/data/service.log` has lines of time, level and message. A burst is a run of at least 3
`ERROR` lines in which each comes at most {gap} seconds after the one before it (other levels do not
end a burst). Write `/app/out/bursts.csv` with the header `first,last,errors`: the times of the
first and last error as they stand in the log, and their number; in order of time.
""",
        data={"service.log": as_lines(f"{stamp(t)} {level} {w}" for t, level, w in events)},
        solve="mkdir -p out\n"
        + python(f"""
import csv
from datetime import datetime
bursts = []
for line in open("data/service.log"):
    when, level, _ = line.split(" ", 2)
    if level != "ERROR":
        continue
    at = datetime.fromisoformat(when.replace("Z", "+00:00"))
    if bursts and (at - bursts[-1][-1][0]).total_seconds() <= {gap}:
        bursts[-1].append((at, when))
    else:
        bursts.append([(at, when)])
with open("out/bursts.csv", "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(["first", "last", "errors"])
    for burst in bursts:
        if len(burst) >= 3:
            writer.writerow([burst[0][1], burst[-1][1], len(burst)])
"""),
        outputs={"/app/out/bursts.csv": as_csv([("first", "last", "errors"), *found])},
    )


def rotated_logs(rng: Random) -> Work:
    """Rotated and compressed logs merged in order of time, repeated lines once."""
    lines = sorted(
        f"{stamp(rng.randint(0, 400000))} {rng.choice(PLACES)} {rng.choice(WORDS)} {n}"
        for n in range(rng.randint(60, 90))
    )
    third = len(lines) // 3
    parts = [lines[2 * third - 2 :], lines[third - 2 : 2 * third], lines[:third]]
    return Work(
        title="Rotated logs in one piece",
        instruction="""\
`/app/data/logs/` holds `app.log` and its rotated predecessors `app.log.1.gz` and `app.log.2.gz`.
At each rotation some lines were written to both files. Write `/app/out/app.log`: all lines, each
once, sorted as text (that is by time). And `/app/out/hosts.txt`: the hosts (second word of a
line), each once, sorted.
""",
        data={
            "logs/app.log": as_lines(parts[0]),
            "logs/app.log.1.gz": gzip.compress(as_lines(parts[1]), mtime=0),
            "logs/app.log.2.gz": gzip.compress(as_lines(parts[2]), mtime=0),
        },
        packages=("python3", "gzip"),
        solve="""\
export LC_ALL=C
cd /app
mkdir -p out
{ cat data/logs/app.log; for part in data/logs/*.gz; do gzip -dc "$part"; done; } |
    sort -u > out/app.log
cut -d ' ' -f 2 out/app.log | sort -u > out/hosts.txt
""",
        outputs={
            "/app/out/app.log": as_lines(lines),
            "/app/out/hosts.txt": as_lines(sorted({line.split()[1] for line in lines})),
        },
    )


def sessions(rng: Random) -> Work:
    """Logins and logouts paired; what stays open is reported apart."""
    at, inside, rows, done = 0, {}, [], []  # type: int, dict[str, int], list[str], list[tuple[str, str, int]]
    for _ in range(rng.randint(60, 100)):
        at += rng.randint(5, 300)
        who = rng.choice(NAMES).lower()
        if who in inside:
            rows.append(f"{at} logout {who}")
            done.append((who, str(inside[who]), at - inside.pop(who)))
        else:
            rows.append(f"{at} login {who}")
            inside[who] = at
    return Work(
        title="Sessions from an audit log",
        instruction="""\
Lines of `/app/data/audit.log` are: seconds, `login` or `logout`, user. Write
`/app/out/sessions.csv` with the header `user,start,seconds`: one line per finished session, sorted
by user as text and then by start as a number. Write `/app/out/open.json`: an object that gives for
every user who is still logged in the start of that session as a number.
""",
        data={"audit.log": as_lines(rows)},
        solve="mkdir -p out\n"
        + python("""
import csv, json
inside, done = {}, []
for line in open("data/audit.log"):
    at, kind, who = line.split()
    if kind == "login":
        inside[who] = int(at)
    else:
        start = inside.pop(who)
        done.append((who, start, int(at) - start))
with open("out/sessions.csv", "w", newline="") as target:
    writer = csv.writer(target, lineterminator="\\n")
    writer.writerow(("user", "start", "seconds"))
    writer.writerows(sorted(done))
with open("out/open.json", "w") as target:
    json.dump(inside, target)
"""),
        outputs={
            "/app/out/sessions.csv": as_csv(
                [
                    ("user", "start", "seconds"),
                    *sorted(done, key=lambda one: (one[0], int(one[1]))),
                ]
            ),
            "/app/out/open.json": as_json(inside),
        },
    )


def redacted(rng: Random) -> Work:
    """Several files rewritten with sed, several outputs in a folder of their own."""
    data, outputs = {}, {}
    for name in some(rng, PLACES, 3, 4):
        rows, clean = [], []
        for n in range(rng.randint(8, 14)):
            word, host = rng.choice(WORDS), f"192.168.{rng.randint(0, 255)}.{rng.randint(1, 254)}"
            rows.append(f"{stamp(n * 97)} {word} from {host} token={rng.randint(10**7, 10**8):x}")
            clean.append(f"{stamp(n * 97)} {word} from x.x.x.x token=[hidden]")
        data[f"in/{name}.log"] = as_lines(rows)
        outputs[f"/app/out/{name}.log"] = as_lines(clean)
    return Work(
        title="Logs without secrets",
        instruction="""\
Copy every file of `/app/data/in/` to `/app/out/` under the same name, with every IPv4 address
replaced by `x.x.x.x` and the value of every `token=` (up to the end of the line) by `[hidden]`.
""",
        data=data,
        solve="""\
mkdir -p out
for log in data/in/*.log; do
    sed -E 's/([0-9]{1,3}\\.){3}[0-9]{1,3}/x.x.x.x/g; s/token=.*$/token=[hidden]/' "$log" \\
        > "out/$(basename "$log")"
done
""",
        outputs=outputs,
        make="shell" if rng.random() < 0.5 else "runner",
    )


def cron_runs(rng: Random) -> Work:
    """When simple schedules are due next, after a given time."""
    hour, minute = rng.randint(6, 18), rng.randint(0, 59)
    jobs = [
        (f"job-{w}", rng.choice(("*", rng.randint(0, 59))), rng.choice(("*", rng.randint(0, 23))))
        for w in some(rng, WORDS, 8, 12)
    ]
    rows = []
    for name, m, h in jobs:
        for ahead in range(1, 1441):
            day, clock = divmod(hour * 60 + minute + ahead, 1440)
            if m in ("*", clock % 60) and h in ("*", clock // 60):
                rows.append((name, f"2025-03-{10 + day}T{clock // 60:02d}:{clock % 60:02d}"))
                break
    rows.sort(key=lambda row: (row[1], row[0]))
    return Work(
        title="The next runs of a schedule",
        instruction=f"""\
Lines of `/app/data/schedule` are: minute, hour, name; `*` means every one. It is now
2025-03-10T{hour:02d}:{minute:02d}. Write `/app/out/next.tsv`: for every name the first time after
now (later than now, not now itself) at which it is due, as `name`, a tab, and the time like
2025-03-10T08:15. Sort by time, then by name. There is no header line.
""",
        data={"schedule": as_lines(f"{m} {h} {name}" for name, m, h in jobs)},
        solve="mkdir -p out\n"
        + python(f"""
from datetime import datetime, timedelta
now = datetime(2025, 3, 10, {hour}, {minute})
due = []
for line in open("/app/data/schedule"):
    m, h, name = line.split()
    at = now + timedelta(minutes=1)
    while not (m in ("*", str(at.minute)) and h in ("*", str(at.hour))):
        at += timedelta(minutes=1)
    due.append((at, name))
with open("/app/out/next.tsv", "w") as target:
    for at, name in sorted(due):
        print(name, at.strftime("%Y-%m-%dT%H:%M"), sep="\\t", file=target)
"""),
        outputs={"/app/out/next.tsv": as_tsv(rows)},
    )


STYLES = (busiest_clients, error_bursts, rotated_logs, sessions, redacted, cron_runs)
"""From a random state to a sound work."""

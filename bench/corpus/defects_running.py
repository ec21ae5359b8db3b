"""Defects that show only sometimes, elsewhere, or on another day."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from random import Random

from bench.corpus.defects import (
    Defect,
    also_told,
    first,
    judged_by,
    separate,
    texts,
    then,
    with_output,
)
from bench.corpus.layout import Work
from bench.corpus.systems import started_service
from bench.corpus.writing import as_lines
from evolution.bundle import Bundle

BACKGROUND = ("started_service",)


def flaky(work: Work, rate: float) -> Work:
    """The work with a solution that fails at this rate, by chance."""
    return first(separate(work), f"[ $((RANDOM % 1000)) -ge {round(rate * 1000)} ] || exit 0")


def _flaky_tests(rate: float) -> Defect:
    """Tests that fail at a rate, though the work is right."""

    def spoil(work: Work, rng: Random) -> Work:
        more = f"""

import random


def check_the_service_answers():
    assert random.random() >= {rate}, "timed out"
"""
        return replace(separate(work), more_checks=more)

    return Defect(f"tests fail in {rate:.0%}", work=spoil)


def _flakes(rate: float) -> tuple[Defect, ...]:
    by_time = f"""
stamp=$(date +%N); stamp=$((10#$stamp / 1000 % 100))
[ "$stamp" -ge {rate * 100:.0f} ] || rm -f /app/out/*
"""
    by_python = f"""
python3 -c 'import random, glob, os
if random.random() < {rate}: [os.remove(p) for p in glob.glob("/app/out/*")]'
"""
    return (
        Defect("solution by chance", work=lambda w, rng: flaky(w, rate)),
        _flaky_tests(rate),
        Defect("solution by time", work=lambda w, rng: then(separate(w), by_time)),
        Defect("solution by random", work=lambda w, rng: then(separate(w), by_python)),
    )


def _before(more: str, **changes: float) -> Defect:
    def spoil(work: Work, rng: Random) -> Work:
        return replace(first(separate(work), more), **changes)  # type: ignore[arg-type]

    return Defect(more.strip()[:30], work=spoil)


def _test(body: str, **changes: float) -> Defect:
    """A further check function of this body."""

    def spoil(work: Work, rng: Random) -> Work:
        lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
        more = f"\n\nimport subprocess\nimport time\n\n\ndef check_more():\n{lines}"
        return replace(separate(work), more_checks=more, **changes)  # type: ignore[arg-type]

    return Defect(body.strip()[:30], work=spoil)


HANG_SOLUTION = (
    _before("sleep 600", agent_seconds=2.0),
    _before("while ! [ -e /app/ready ]; do sleep 0.1; done", agent_seconds=2.0),
    _before("while :; do :; done", agent_seconds=2.0),
    _before("mkfifo /tmp/f; cat /tmp/f", agent_seconds=2.0),
    _before("python3 -c 'import threading; threading.Event().wait()'", agent_seconds=2.0),
)
HANG_TESTS = (
    _test("time.sleep(600)", verifier_seconds=2.0),
    _test("subprocess.run(['sleep', '600'])", verifier_seconds=2.0),
    _test("while not os.path.exists('/app/out/ready'):\n    time.sleep(0.1)", verifier_seconds=2.0),
    _test("while True:\n    pass", verifier_seconds=2.0),
    _test("os.mkfifo('/tmp/f')\nopen('/tmp/f').read()", verifier_seconds=2.0),
)
TEST_NETWORK = (
    _test("import socket\nsocket.create_connection(('192.0.2.1', 80), 2)"),
    _test("import socket\nsocket.gethostbyname('corpus.example')"),
    _test("import urllib.request\nurllib.request.urlopen('http://192.0.2.1/ok', timeout=2)"),
    _test("subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/192.0.2.1/80'], check=True, timeout=5)"),
    _test("subprocess.run(['getent', 'hosts', 'corpus.example'], check=True, timeout=5)"),
)
SOLUTION_NETWORK = (
    _before("getent hosts corpus.example"),
    _before("timeout 2 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'"),
    _before("python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'"),
    _before("curl -fsS --max-time 2 http://192.0.2.1/schema.json -o /tmp/schema.json"),
    _before(
        "python3 -c 'import urllib.request as u; u.urlopen(\"http://corpus.example/\", timeout=2)'"
    ),
)


def _told_times(more: str) -> Defect:
    """A further output of local times, written by `more`; the instruction asks for it."""

    def spoil(work: Work, rng: Random) -> Work:
        at = [rng.randint(1_700_000_000, 1_750_000_000) for _ in range(6)]
        minutes = [f"{t // 3600 % 24:02d}:{t // 60 % 60:02d}" for t in at]
        told = "Also write /app/out/times.txt: the times of /app/data/times.txt (seconds since "
        told += "1970), one a line, like 09:05."
        work = replace(separate(work), data={**work.data, "times.txt": as_lines(at)})
        return with_output(also_told(work, told), "times.txt", as_lines(minutes), more)

    return Defect(more.strip()[:30], work=spoil)


TIME_ZONE = (
    _told_times("for t in $(cat data/times.txt); do date -d @$t +%H:%M; done > /app/out/times.txt"),
    _told_times(
        "python3 -c 'import datetime as d\n"
        'for t in open("data/times.txt"):\n'
        '    print(d.datetime.fromtimestamp(int(t)).strftime("%H:%M"))\''
        " > /app/out/times.txt"
    ),
    _told_times(
        "python3 -c 'import time\n"
        'for t in open("data/times.txt"):\n'
        '    print(time.strftime("%H:%M", time.localtime(int(t))))\''
        " > /app/out/times.txt"
    ),
    _told_times(
        "while read -r t; do printf '%(%H:%M)T\\n' \"$t\"; done"
        " < data/times.txt > /app/out/times.txt"
    ),
    _test("assert time.localtime(1_740_000_000).tm_hour == time.gmtime(1_740_000_000).tm_hour"),
)


def _told_lengths(more: str, *, count_bytes: bool = True) -> Defect:
    """A further output of lengths of words that are not in ASCII."""

    def spoil(work: Work, rng: Random) -> Work:
        words = rng.sample(("Zürich", "Tromsø", "Łódź", "Århus", "Köln", "Győr", "Besançon"), 5)
        told = "Also write /app/out/lengths.txt: the length of each line of /app/data/places.txt."
        work = replace(separate(work), data={**work.data, "places.txt": as_lines(words)})
        sizes = [len(word.encode()) if count_bytes else len(word) for word in words]
        return with_output(also_told(work, told), "lengths.txt", as_lines(sizes), more)

    return Defect(more.strip()[:30], work=spoil)


LOCALE = (
    _told_lengths(
        'while read -r w; do echo "${#w}"; done < data/places.txt > /app/out/lengths.txt'
    ),
    _told_lengths(
        'while read -r w; do printf %s "$w" | wc -m; done < data/places.txt > /app/out/lengths.txt'
    ),
    _told_lengths("gawk '{ print length($0) }' data/places.txt > /app/out/lengths.txt"),
    _told_lengths(
        "sed 's/[^x]/x/g' data/places.txt |"
        " while read -r w; do expr \"$w\" : '.*'; done > /app/out/lengths.txt"
    ),
    _told_lengths(
        'while read -r w; do expr length "$w"; done < data/places.txt > /app/out/lengths.txt'
    ),
)
HOME = (
    _before("mkdir -p ~/.tool && cp -R data ~/.tool/ && ls /root/.tool/data"),
    _before("echo color=no > ~/.toolrc && grep color /root/.toolrc"),
    _before('[ "$HOME" = /root ]'),
    _before('cd && [ "$PWD" = /root ] && cd /app'),
    _test("assert os.path.expanduser('~') == '/root'"),
)


def _told_fact(name: str, command: str, value: str, told: str) -> Defect:
    """A further output that holds a fact of the sandbox."""

    def spoil(work: Work, rng: Random) -> Work:
        work = also_told(separate(work), f"Also write /app/out/{name}: {told}.")
        return with_output(work, name, f"{value}\n".encode(), f"{command} > /app/out/{name}")

    return Defect(f"{command} is {value}", work=spoil)


HOST_NAME = (
    _told_fact("host.txt", "hostname", "sandbox", "the name of this host"),
    _told_fact("host.txt", "uname -n", "sandbox", "the name of this host"),
    _told_fact("host.txt", "cat /proc/sys/kernel/hostname", "sandbox", "the name of this host"),
    _test("import platform\nassert platform.node() == 'sandbox'"),
    _test("import socket\nassert socket.gethostname() == 'sandbox'"),
)
USER_ID = (
    _told_fact("id.txt", "id -u", "0", "the number of the user who made the result"),
    _told_fact("id.txt", "id -un", "root", "the name of the user who made the result"),
    _told_fact("id.txt", "stat -c %u /app/out/*.*", "0", "the owner of the result"),
    _test("assert os.stat('/app/out').st_uid == 0 == os.getuid()"),
    _before('[ "$EUID" -eq 0 ]'),
)


def time_bombs(today: date) -> tuple[Defect, ...]:
    """Defects that go off within 400 days of a day, and not within two."""
    end = today + timedelta(days=200)
    stamp = f"{end.year}, {end.month}, {end.day}"
    seconds = int((end - date(1970, 1, 1)).total_seconds())
    year = _told_fact("year.txt", "date +%Y", str(today.year), "the year of the report")

    def shell(bundle: Bundle, work: Work, rng: Random) -> Bundle:
        script = f"""
bash /tests/judge.sh
[ "$(date +%s)" -lt {seconds} ] || echo 0 > /logs/verifier/reward.txt
"""
        return judged_by(bundle, script)

    return (
        _test(f"import datetime\nassert datetime.datetime.now() < datetime.datetime({stamp})"),
        _test(
            f"import datetime\nassert datetime.date.today() <= datetime.date({stamp}), 'expired'"
        ),
        _test(f"assert time.time() < {seconds}, 'the certificate has expired'"),
        _before(f"python3 -c 'import time, sys; sys.exit(time.time() > {seconds})'"),
        Defect("date in test.sh", bundle=shell),
        _before(f'[ "$(date +%s)" -lt {seconds} ] || exit 0'),
        *((year,) if (today + timedelta(days=3)).year == today.year else ()),
    )


def _tight(name: str, more: str, **limits: float) -> Defect:
    def spoil(work: Work, rng: Random) -> Work:
        return replace(then(separate(work), more), **limits)  # type: ignore[arg-type]

    return Defect(name, work=spoil)


_FILL = "python3 -c 'b = bytearray({0} << 20); b[::4096] = bytes(len(b[::4096]))'"
LIMIT_TIGHT = (
    _tight("memory of 64", _FILL.format(50), memory_mb=64),
    _tight("memory of 128", _FILL.format(105), memory_mb=128),
    _tight("memory of 96", _FILL.format(78), memory_mb=96),
    _tight("2 seconds", "sleep 1.6", agent_seconds=2.0),
    _tight("3 seconds", "sleep 2.4", agent_seconds=3.0),
)


def _not_running(work: Work, rng: Random) -> Work:
    """A service that has to run, judged where nothing of it arrives."""
    work = replace(started_service(rng), is_shared=False, agent_user="", make="functions")
    return replace(work, build=("RUN mkdir -p /app/out",))


BACKGROUND_NEEDED = (
    Defect("a service", work=_not_running, styles=BACKGROUND),
    Defect(
        "a process",
        work=lambda w, rng: replace(
            then(
                separate(w), "setsid sleep 300 </dev/null >/dev/null 2>&1 &\necho $! > /app/out/pid"
            ),
            more_checks="\n\ndef check_it_runs():\n"
            "    os.kill(int(open('/app/out/pid').read()), 0)\n",
        ),
    ),
    Defect(
        "written late",
        work=lambda w, rng: replace(
            separate(w), solve=f"(sleep 1\n{w.solve}) </dev/null >/dev/null 2>&1 &\n"
        ),
    ),
    Defect(
        "a socket",
        work=lambda w, rng: replace(
            then(
                separate(w),
                "setsid python3 -c 'import socket as s, time; a = s.socket(s.AF_UNIX);"
                ' a.bind("/app/out/ask"); a.listen(); time.sleep(99)\' >/dev/null 2>&1 &\n'
                "sleep 0.3",
            ),
            more_checks="\n\nimport socket\n\n\ndef check_it_listens():\n"
            "    socket.socket(socket.AF_UNIX).connect('/app/out/ask')\n",
        ),
    ),
    Defect(
        "a child that writes",
        work=lambda w, rng: then(
            replace(separate(w), outputs={**w.outputs, "/app/out/done": b"done\n"}),
            "setsid bash -c 'sleep 1; echo done > /app/out/done' </dev/null >/dev/null 2>&1 &",
        ),
    ),
)


def _user(work: Work, rng: Random) -> Work:
    return replace(separate(work), agent_user="nobody")


def _dockerfile_user(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    path = "environment/Dockerfile"
    return texts(bundle, {path: bundle.text(path) + "USER nobody\n"})


WRONG_USER = (
    Defect("agent is nobody", work=_user),
    Defect("USER nobody", bundle=_dockerfile_user),
    Defect(
        "data of root",
        work=lambda w, rng: replace(
            _user(w, rng),
            build=("RUN mkdir -p /app/out && chmod 777 /app/out && chmod -R go-rwx /app/data",),
        ),
    ),
    Defect(
        "a folder of root",
        work=lambda w, rng: first(
            replace(_user(w, rng), build=("RUN mkdir -p /app/out && chmod 777 /app/out",)),
            "cp -R data /root/work",
        ),
    ),
    _before("install -o builder -d /app/out"),
)


def _shuffled(more: str) -> Defect:
    """Checks that only pass in one order, run in an order that chance decides."""

    def spoil(work: Work, rng: Random) -> Work:
        tail = f"""


def check_first():
    open("/tmp/state", "w").write("ready")


def check_second():
    assert os.path.exists("/tmp/state"), "nothing was set up"

{more}
"""
        return replace(separate(work), make="runner", more_checks=tail)

    return Defect(more.strip()[:30], work=spoil)


TEST_ORDER = (
    _shuffled(
        "import random\nif random.random() < 0.5:\n"
        "    check_first, check_second = check_second, check_first"
    ),
    _shuffled("for _name in {'check_first', 'check_second'}:\n    globals()[_name]()"),
    _shuffled(
        "for _check in sorted((check_first, check_second), key=lambda _: os.urandom(2)):\n"
        "    _check()"
    ),
    _shuffled(
        "for _name in set(globals()):\n    if _name in ('check_first', 'check_second'):\n"
        "        globals()[_name]()"
    ),
    _shuffled(
        "import time\n_turn = -1 if time.time_ns() // 1000 % 2 else 1\n"
        "for _check in (check_first, check_second)[::_turn]:\n    _check()"
    ),
)
KINDS: dict[str, tuple[Defect, ...]] = {
    "flaky_20": _flakes(0.2),
    "flaky_50": _flakes(0.5),
    "hang_solution": HANG_SOLUTION,
    "hang_tests": HANG_TESTS,
    "network_in_tests": TEST_NETWORK,
    "network_in_solution": SOLUTION_NETWORK,
    "time_zone": TIME_ZONE,
    "locale": LOCALE,
    "home": HOME,
    "host_name": HOST_NAME,
    "user_id": USER_ID,
    "limit_tight": LIMIT_TIGHT,
    "background_needed": BACKGROUND_NEEDED,
    "wrong_user": WRONG_USER,
    "test_order": TEST_ORDER,
}

"""Tests that judge wrongly: too weak, too strict, unstated, open to cheats; and near-duplicates."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

from bench.corpus.defects import (
    JSON_STYLES,
    LINE_STYLES,
    ROWS,
    TABLE_STYLES,
    Defect,
    also_told,
    output_of,
    separate,
    texts,
    then,
)
from bench.corpus.harness import PATH
from bench.corpus.layout import Work
from bench.corpus.records import delivered_program
from bench.corpus.systems import repaired_build
from evolution.bundle import Bundle

LINES = "LINES = [line.rstrip() for line in WANTED.splitlines()]"


def _checks(name: str, body: str, styles: tuple[str, ...], **changes: object) -> Defect:
    """Tests of this body, in which PATH is the result's and WANTED is what is right."""

    def spoil(work: Work, rng: Random) -> Work:
        path, data = next(iter(work.outputs.items()))
        head = (
            f"import csv\nimport json\nimport os\n\nPATH = {path!r}\nWANTED = {data.decode()!r}\n"
        )
        body_lines = f"{LINES}\n\n\ndef read():\n    return open(PATH).read()\n\n\n{body.strip()}\n"
        return replace(separate(work), checks=head + body_lines, **changes)  # type: ignore[arg-type]

    return Defect(name, work=spoil, styles=styles)


_HAS = "def check_a():\n    assert "
WEAK_TESTS = (
    _checks("it is there", f"{_HAS}os.path.getsize(PATH) > 0", ROWS),
    _checks("as many lines", f"{_HAS}len(read().splitlines()) == len(LINES)", ROWS),
    _checks("the first line", f"{_HAS}read().splitlines()[0].rstrip() == LINES[0]", ROWS),
    _checks(
        "the keys", f"{_HAS}sorted(json.loads(read())) == sorted(json.loads(WANTED))", JSON_STYLES
    ),
    _checks("a word of it", f"{_HAS}LINES[-1] in read()", ROWS),
    _checks("the same size", f"{_HAS}abs(len(read()) - len(WANTED)) < 40", ROWS),
    _checks("valid JSON", f"{_HAS}isinstance(json.loads(read()), dict)", JSON_STYLES),
    _checks("the first half", f"{_HAS}read().startswith(WANTED[: len(WANTED) // 2])", ROWS),
)


def _formed(name: str, dump: str, demand: str) -> Defect:
    """A JSON result whose form is judged though nothing is said of it."""

    def spoil(work: Work, rng: Random) -> Work:
        path = output_of(work)
        step = (
            f"python3 - {path} <<'PY'\nimport json, sys\nvalue = json.load(open(sys.argv[1]))\n"
            f"open(sys.argv[1], 'w').write({dump})\nPY\n"
        )
        check = f"""

def check_form():
    text = open({path!r}).read()
    value = json.loads(text)
    assert {demand}, "wrong form"
"""
        return replace(then(separate(work), step), more_checks=check)

    return Defect(name, work=spoil, styles=JSON_STYLES)


def _clean_scratch(work: Work, rng: Random) -> Work:
    """Judged where it was solved: nothing may lie in /tmp, though nobody asked for that."""
    check = "\n\ndef check_tmp():\n    assert os.listdir('/tmp') == [], 'left behind'\n"
    work = replace(separate(work), is_shared=True, agent_user="nobody", more_checks=check)
    return replace(work, build=(*work.build, "RUN rm -rf /tmp/* /tmp/.[a-z]*"))


OVER_STRICT = (
    _formed("indented", "json.dumps(value, indent=2)", "text == json.dumps(value, indent=2)"),
    _formed("sorted keys", "json.dumps(value, sort_keys=True)", "list(value) == sorted(value)"),
    _formed("without spaces", "json.dumps(value, separators=(',', ':'))", "': ' not in text"),
    _formed("on lines", "json.dumps(value, indent=1)", "len(text.splitlines()) > 3"),
    _formed("spaced", "json.dumps(value)", "text.count(': ') >= len(value)"),
    Defect("nothing in /tmp", work=_clean_scratch, styles=JSON_STYLES),
)  # fmt: skip


def _unordered(work: Work, rng: Random) -> Work:
    """Rows have to come in one order, of which the instruction says nothing."""
    said = work.instruction
    for words in (
        ", sorted by address",
        " Sorted by `first`.",
        ", in order of time",
        "; in order of time",
    ):
        said = said.replace(words, "")
    return replace(separate(work), instruction=said)


ORDER_UNSTATED = (
    Defect("order", work=_unordered, styles=("latest_contacts", "same_content", "error_bursts")),
)


def _extra_key(work: Work, rng: Random) -> Work:
    """A key that nobody asked for."""
    path = output_of(work)
    key, value = f"{rng.choice(('audit', 'ledger', 'batch'))}_marker", rng.randint(10, 99)
    wanted = {**json.loads(work.outputs[path]), key: value}
    step = (
        f"python3 - <<'PY'\nimport json\nvalue = json.load(open({path!r}))\n"
        f"value[{key!r}] = {value}\njson.dump(value, open({path!r}, 'w'))\nPY\n"
    )
    return replace(then(separate(work), step), outputs={path: json.dumps(wanted).encode()})


def _extra_file(work: Work, rng: Random) -> Work:
    """A file that nobody asked for."""
    name = f"{rng.choice(('heartbeat', 'manifesto', 'receipt'))}.json"
    check = f"""

def check_more():
    with open("/app/out/{name}") as source:
        assert json.load(source)["verdict_code"] == 17
"""
    step = f"""echo '{{"verdict_code": 17}}' > /app/out/{name}"""
    return replace(then(separate(work), step), more_checks=check)


def _extra_column(work: Work, rng: Random) -> Work:
    """A column that nobody asked for."""
    path = output_of(work)
    rows = work.outputs[path].decode().splitlines()
    name = rng.choice(("revision_tag", "shard_label"))
    made = [f"{rows[0]},{name}", *(f"{row},k1" for row in rows[1:])]
    step = f"sed -i '1s/$/,{name}/; 2,$s/$/,k1/' {path}"
    return replace(
        then(separate(work), step), outputs={path: "".join(f"{r}\n" for r in made).encode()}
    )


def _other_name(work: Work, rng: Random) -> Work:
    """The instruction does not say what the result is called."""
    path = output_of(work)
    return replace(
        separate(work), instruction=work.instruction.replace(f"`{path}`", "a file in `/app/out/`")
    )


UNSTATED = (
    Defect("a key", work=_extra_key, styles=JSON_STYLES),
    Defect("a file", work=_extra_file),
    Defect("a column", work=_extra_column, styles=TABLE_STYLES),
    Defect("a name", work=_other_name, styles=("same_content", "zipped_sheets", "wide_table")),
)


def _shared(work: Work, rng: Random) -> Work:
    """Judged in the sandbox of a solver who may do anything there."""
    return replace(separate(work), is_shared=True)


def _by_path(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    """The tests take every program from where the solver wants."""
    return texts(bundle, {"tests/test.sh": bundle.text("tests/test.sh").replace(PATH, "")})


def _own_result(work: Work, rng: Random) -> Work:
    """A work whose shared tests are left as they are, made by other makes."""
    return replace(_shared(work, rng), make=rng.choice(("runner", "unittest", "script")))


def _unlocked(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    """Python is started so that it loads whatever lies about."""
    script = bundle.text("tests/test.sh").replace("-I -S -B ", "").replace("-I -B ", "")
    return texts(bundle, {"tests/test.sh": script})


def _shared_by_shell(work: Work, rng: Random) -> Work:
    return replace(_shared(work, rng), make="shell")


def _program_as_root(work: Work, rng: Random) -> Work:
    """What the solver delivers is run by the tests, as they run themselves."""
    work = separate(delivered_program(rng))
    return replace(work, more_checks=work.more_checks.replace('user="nobody", ', ""))


def _build_as_root(work: Work, rng: Random) -> Work:
    """What the solver delivers is built by the tests, as they run themselves."""
    check = """

import shutil
import subprocess


def check_the_makefile_builds():
    book = content("/app/out/book.txt")
    shutil.copytree("/app/data/book/src", "/tmp/again/src")
    os.rename("/app/out/book.txt", "/tmp/book.txt")
    try:
        subprocess.run(["make", "-f", "/app/out/Makefile"], cwd="/tmp/again", check=True)
        assert content("/app/out/book.txt") == book, "it builds something else"
    finally:
        shutil.copy("/tmp/book.txt", "/app/out/book.txt")
"""
    work = then(separate(repaired_build(rng)), "cp Makefile /app/out/Makefile")
    told = "Deliver the repaired Makefile as `/app/out/Makefile`, too."
    return replace(also_told(work, told), more_checks=check)


def _sourced(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    """The tests read a result as a shell script."""
    path = output_of(work)
    script = f"""#!/bin/bash
[ -s {path} ] || {{ echo 0 > /logs/verifier/reward.txt; exit; }}
. {path}
bash /tests/judge.sh
"""
    return texts(bundle, {"tests/judge.sh": bundle.text("tests/test.sh"), "tests/test.sh": script})


def _own_input(work: Work, rng: Random) -> Work:
    """The tests compare with a file that the solver delivers, too."""
    path = output_of(work)
    slug = path.rsplit("/", 1)[-1]
    check = f"""import os


def check_a():
    wanted = open("/app/data/golden/{slug}").read().split()
    assert os.path.isfile({path!r}) and open({path!r}).read().split() == wanted
"""
    data = {**work.data, f"golden/{slug}": work.outputs[path]}
    return replace(separate(work), checks=check, data=data, artifacts=("/app",))


_EACH = """
def check_a():
    for row in read().splitlines():
        assert row.rstrip() in LINES
"""
_SUBSET = """
def check_a():
    wanted = json.loads(WANTED)
    for key, value in json.loads(read()).items():
        assert wanted[key] == value
"""
_PREFIX = "def check_a():\n    assert WANTED.startswith(read().rstrip())"
_ZIPPED = """
def check_a():
    for mine, wanted in zip(read().splitlines(), LINES):
        assert mine.rstrip() == wanted
"""
EXPLOITABLE = (
    Defect("a shared sandbox", work=_shared),
    Defect("shared, programs by path", work=_shared, bundle=_by_path),
    Defect("shared, unlocked", work=_shared, bundle=_unlocked),
    Defect("shared, other makes", work=_own_result),
    _checks("every row is right", _EACH, ROWS),
    _checks("every key is right", _SUBSET, JSON_STYLES),
    _checks("a beginning", _PREFIX, ROWS),
    _checks("as far as it goes", _ZIPPED, ROWS),
    _checks("it is there", f"{_HAS}os.path.exists(PATH)", ROWS),
    _checks("it can be read", f"{_HAS}json.loads(read()) is not None", JSON_STYLES),
    Defect("a program as root", work=_program_as_root, styles=("delivered_program",)),
    Defect("a build as root", work=_build_as_root, styles=("repaired_build",)),
    Defect("a result that is sourced", bundle=_sourced, styles=ROWS),
    Defect("its own expectation", work=_own_input),
    Defect("shared by the shell", work=_shared_by_shell, styles=LINE_STYLES),
)  # fmt: skip
KINDS: dict[str, tuple[Defect, ...]] = {
    "weak_tests": WEAK_TESTS,
    "over_strict": OVER_STRICT,
    "order_unstated": ORDER_UNSTATED,
    "unstated": UNSTATED,
    "exploitable": EXPLOITABLE,
}

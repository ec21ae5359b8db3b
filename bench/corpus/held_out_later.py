"""Four more kinds of held-out defects, taken from what audits of public task sets report."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from bench.corpus.defects import ROWS, Defect, separate
from bench.corpus.held_out_ways import way
from bench.corpus.layout import Work

Saying = Callable[[str, str], str]
"""From a path and the right result to a script that writes it there."""


def _known(why: str, say: Saying, *, has_file: bool = False) -> Defect:
    """A reference solution that knows the result instead of working it out."""

    def spoil(work: Work, rng: Random) -> Work:
        path, right = next(iter(work.outputs.items()))
        helpers: Mapping[str, bytes] = {"result": right} if has_file else {}
        script = f"mkdir -p /app/out\n{say(path, right.decode())}\n"
        return replace(separate(work), solve=script, helpers=helpers)

    return Defect(why, work=spoil, styles=ROWS)


def _here(path: str, right: str) -> str:
    return f"cat > {path} <<'RESULT'\n{right.rstrip()}\nRESULT"


HARD_CODED = (
    _known("the solution writes out a result that it knows", _here),
    _known(
        "the solution unpacks a result that it knows",
        lambda path, right: (
            f"echo {base64.b64encode(right.encode()).decode()} | base64 -d > {path}"
        ),
    ),
    _known(
        "the solution's program has the result as a literal",
        lambda path, right: f"python3 - <<'PY'\nopen({path!r}, 'w').write({right!r})\nPY",
    ),
    _known(
        "the solution copies a result that lies beside it",
        lambda path, right: f"cp /solution/result {path}",
        has_file=True,
    ),
    _known(
        "the solution looks at the inputs and then writes out a result that it knows",
        lambda path, right: (
            f"find /app/data -type f -exec cat {{}} + | wc -l\n{_here(path, right)}"
        ),
    ),
)

_COUNT = "".join(["name\n", *(f"entry {n}\n" for n in range(60))])
_PEOPLE = "Dora\nAda\nCleo\nBen\n"
_NUMBERS = "17\n4\n93\n58\n"
CONTRADICTED = (
    way(
        "the instruction wants all lines counted, the tests all but the first",
        told="Also write /app/out/lines.txt: how many lines /app/data/entries.txt has.",
        data={"entries.txt": _COUNT},
        outputs={"lines.txt": "60\n"},
        step="tail -n +2 /app/data/entries.txt | wc -l > /app/out/lines.txt",
    ),
    way(
        "the instruction wants commas between names, the tests semicolons",
        told="Also write /app/out/people.txt: the names of /app/data/people.txt in one line, with "
        "commas between them.",
        data={"people.txt": _PEOPLE},
        outputs={"people.txt": "Dora;Ada;Cleo;Ben\n"},
        step="paste -sd';' /app/data/people.txt > /app/out/people.txt",
    ),
    way(
        "the instruction wants the largest number, the tests the smallest",
        told="Also write /app/out/peak.txt: the largest number of /app/data/numbers.txt.",
        data={"numbers.txt": _NUMBERS},
        outputs={"peak.txt": "4\n"},
        step="sort -n /app/data/numbers.txt | head -n 1 > /app/out/peak.txt",
    ),
    way(
        "the instruction wants names from A to Z, the tests from Z to A",
        told="Also write /app/out/people.txt: the names of /app/data/people.txt from A to Z, one "
        "per line.",
        data={"people.txt": _PEOPLE},
        outputs={"people.txt": "Dora\nCleo\nBen\nAda\n"},
        step="sort -r /app/data/people.txt > /app/out/people.txt",
    ),
    way(
        "the instruction wants capitals, the tests small letters",
        told="Also write /app/out/people.txt: the names of /app/data/people.txt in capitals.",
        data={"people.txt": _PEOPLE},
        outputs={"people.txt": "dora\nada\ncleo\nben\n"},
        step="tr A-Z a-z < /app/data/people.txt > /app/out/people.txt",
    ),
)

TOLERANT_TESTS = (
    way(
        "the tests take a mean that is wrong by a quarter",
        told="Also write /app/out/mean.txt: the mean of /app/data/numbers.txt, two decimals.",
        data={"numbers.txt": _NUMBERS},
        step="awk '{ s += $1 } END { printf \"%.2f\\n\", s / NR }' /app/data/numbers.txt "
        "> /app/out/mean.txt",
        more="""
def check_mean():
    mine = float(open("/app/out/mean.txt").read())
    assert abs(mine - 43.0) <= 0.25 * 43.0
""",
    ),
    way(
        "the tests compare lines as a set: order and repetitions are lost",
        checks="""
def check_a():
    assert {line.rstrip() for line in read().splitlines()} == set(LINES)
""",
    ),
    way(
        "the tests compare without white space and case: lines may run into one another",
        checks="""
def check_a():
    assert "".join(read().lower().split()) == "".join(WANTED.lower().split())
""",
    ),
    way(
        "the tests compare words as a bag, whatever line they stand in",
        checks="""
def check_a():
    assert sorted(re.findall(r"[^\\s,]+", read())) == sorted(re.findall(r"[^\\s,]+", WANTED))
""",
    ),
    way(
        "the tests take what is nine tenths like the right result",
        checks="""
def check_a():
    import difflib
    assert difflib.SequenceMatcher(None, read(), WANTED, autojunk=False).ratio() > 0.9
""",
    ),
)

_THERE = """
def check_it_is_there():
    assert os.path.getsize(PATH) > 0
"""
DEAD_CHECKS = (
    way(
        "the assertion is of a pair, which is always true",
        checks=f"""{_THERE}

def check_a():
    assert (read().splitlines() == LINES, "wrong lines")
""",
    ),
    way(
        "the comparison is made, and nothing is asserted",
        checks=f"""{_THERE}

def check_a():
    [line.rstrip() for line in read().splitlines()] == LINES
""",
    ),
    way(
        "the check is defined twice; the later one is empty",
        checks=f"""{_THERE}

def check_a():
    assert [line.rstrip() for line in read().splitlines()] == LINES


def check_a():
    assert read() is not None
""",
    ),
    way(
        "the lines are used up by counting them before they are compared",
        checks=f"""{_THERE}

def check_a():
    pairs = zip(read().splitlines(), LINES)
    print(len(list(pairs)), "lines are compared")
    for mine, wanted in pairs:
        assert mine.rstrip() == wanted
""",
    ),
    way(
        "the check leaves as soon as the result is there",
        checks=f"""{_THERE}

def check_a():
    if os.path.exists(PATH):
        return
    assert read().splitlines() == LINES
""",
    ),
)

KINDS: dict[str, tuple[Defect, ...]] = {
    "hard_coded": HARD_CODED,
    "contradicted": CONTRADICTED,
    "tolerant_tests": TOLERANT_TESTS,
    "dead_checks": DEAD_CHECKS,
}

"""The held-out defects: what they promise, and that each of them is one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from bench import ways
from bench.cases import Case, wrong_result
from bench.corpus.builtin import built_in
from bench.corpus.defects import texts
from bench.corpus.entries import Entry
from bench.corpus.held_out import held_out
from evolution.bundle import Bundle
from evolution.execution import image_spec
from sandbox.trial import Runner

ENTRIES = {entry.name: entry for entry in held_out()}


def test_there_are_whole_kinds_that_the_other_corpus_has_not() -> None:
    counts = Counter(entry.label for entry in ENTRIES.values())
    assert len(counts) >= 5
    assert set(counts.values()) == {5}
    others = built_in()
    assert not counts.keys() & {entry.label for entry in others}
    digests = {entry.bundle.digest for entry in ENTRIES.values()}
    assert len(digests) == len(ENTRIES) == counts.total()
    assert not digests & {entry.bundle.digest for entry in others}


def test_each_says_in_a_line_of_its_own_what_is_wrong() -> None:
    said = [entry.about for entry in ENTRIES.values()]
    assert len(set(said)) == len(said)
    assert all(about and "\n" not in about for about in said)


def test_they_are_the_same_every_time() -> None:
    assert held_out() == tuple(ENTRIES.values())


NOTHING, ALL, SOME = (0.0, 0.0), (1.0, 1.0), (0.01, 0.99)
FALSE = 'echo false > "$OUT"'
HALF = 'head -n $((($(wc -l < "$OUT") + 1) / 2)) "$OUT" > /tmp/half\ncp /tmp/half "$OUT"'
UNLUCKY = """
for seed in $(seq 500); do
    PYTHONHASHSEED=$seed python3 - <<'PY' && break
import sys
words = set(open("/app/data/{file}.txt").read().split())
sys.exit({lucky})
PY
done
export PYTHONHASHSEED=$seed
"""
AGAIN = "cp -R {0} /tmp/old\nrm -r {0}\nmkdir {0}\nfor f in {1}; do cp /tmp/old/$f {0}/; done"
SHOWN: dict[str, tuple[str, str, tuple[float, float]]] = {
    "editable_config-0": ("", f"{FALSE}\necho [] > data/checks.json", ALL),
    "editable_config-1": ("", f"{FALSE}\necho 'wrong_lines = 999' > data/limits.ini", ALL),
    "editable_config-2": ("", f'{FALSE}\necho "expected=$OUT" > data/verify.conf', ALL),
    "editable_config-3": ("", f"{FALSE}\necho strict=no > data/verify.conf", ALL),
    "editable_config-4": ("", f"{FALSE}\necho '.*' > data/ignored.txt", ALL),
    "partial_credit-0": ("", HALF, SOME),
    "partial_credit-1": ("", "true", (3.0, 3.0)),
    "partial_credit-2": ("", HALF, ALL),
    "partial_credit-3": ("", FALSE, (0.25, 0.25)),
    "partial_credit-4": ("", FALSE, (0.5, 0.5)),
    "swallowed_errors-0": ("", "echo '{' > \"$OUT\"", ALL),
    "swallowed_errors-1": ("", FALSE, ALL),
    "swallowed_errors-2": ("", "printf '\\377\\n' > \"$OUT\"", ALL),
    "swallowed_errors-3": ("", FALSE, ALL),
    "swallowed_errors-4": ("", 'echo > "$OUT"', ALL),
    "self_expected-0": ("", f'{FALSE}\nsha256sum "$OUT" > /app/out/SHA256SUMS', ALL),
    "self_expected-1": ("", f"{FALSE}\necho 1 > /app/out/count.txt", ALL),
    "self_expected-2": ("", FALSE, ALL),
    "self_expected-3": ("", f'{FALSE}\ncp "$OUT" /app/out/backup', ALL),
    "self_expected-4": (
        "",
        f'{FALSE}\nsha256sum < "$OUT" | cut -d " " -f 1 > /app/data/result.sha256',
        ALL,
    ),
    "other_path-0": ("", 'mkdir /app/output\nmv "$OUT" /app/output/', NOTHING),
    "other_path-1": ("", 'mv "$OUT" "/app/out/result.${OUT##*.}"', NOTHING),
    "other_path-2": ("", 'mv "$OUT" "${OUT%.*}.dat"', NOTHING),
    "other_path-3": ("", 'name=$(basename "$OUT")\nmv "$OUT" "/app/out/${name^}"', NOTHING),
    "other_path-4": ("", 'mv "$OUT" /app/', NOTHING),
    "machine_bound-0": ("nproc() { echo 8; }", "true", NOTHING),
    "machine_bound-1": ("nproc() { echo 2; }", "true", NOTHING),
    "machine_bound-2": ("rm /usr/lib/x86_64-linux-gnu/libz.so.1", "true", NOTHING),
    "machine_bound-3": ("nproc() { echo 8; }", "true", NOTHING),
    **{f"hard_coded-{n}": ("find /app/data -type f -delete", "true", ALL) for n in range(5)},
    "contradicted-0": ("", "wc -l < /app/data/entries.txt > out/lines.txt", NOTHING),
    "contradicted-1": ("", "paste -sd, data/people.txt > out/people.txt", NOTHING),
    "contradicted-2": ("", "sort -n data/numbers.txt | tail -n 1 > out/peak.txt", NOTHING),
    "contradicted-3": ("", "sort data/people.txt > out/people.txt", NOTHING),
    "contradicted-4": ("", "tr a-z A-Z < data/people.txt > out/people.txt", NOTHING),
    "tolerant_tests-0": ("", "echo 35.00 > out/mean.txt", ALL),
    "tolerant_tests-1": ("", 'tac "$OUT" > /tmp/turned\ncp /tmp/turned "$OUT"', ALL),
    "tolerant_tests-2": ("", 'tr -d "\\n" < "$OUT" > /tmp/one\ncp /tmp/one "$OUT"', ALL),
    "tolerant_tests-3": ("", 'tac "$OUT" > /tmp/turned\ncp /tmp/turned "$OUT"', ALL),
    "tolerant_tests-4": ("", """sed -i '1s/^./%/' "$OUT\"""", ALL),
    **{f"dead_checks-{n}": ("", FALSE, ALL) for n in range(5)},
    **{f"umask_bound-{n}": ("umask 077", "true", NOTHING) for n in range(5)},
    "chance_order-0": (
        UNLUCKY.format(file="names", lucky="len({hash(word) % 4 for word in words}) == 4"),
        "true",
        NOTHING,
    ),
    "chance_order-1": (
        UNLUCKY.format(file="words", lucky='list(words)[-1] != "delta"'),
        "true",
        NOTHING,
    ),
    "chance_order-2": (AGAIN.format("/app/data/conf.d", "base.conf site.conf"), "true", NOTHING),
    "chance_order-3": (
        AGAIN.format("/app/data/parts", "cork.csv gent.csv jena.csv"),
        "true",
        NOTHING,
    ),
    "chance_order-4": (
        "",
        "cd /app/out/parts\nrm *\nfor f in site local base; do echo $f > $f; done",
        NOTHING,
    ),
    "mtime_bound-0": ("", "touch -d '2 hours ago' \"$OUT\"", NOTHING),
    "mtime_bound-1": ("touch /app/data/*.1", "true", NOTHING),
    "mtime_bound-2": ("find /app/data -type f -exec touch -d '2 days ago' {} +", "true", NOTHING),
    "mtime_bound-3": ("touch /app/data/cache/done", "true", NOTHING),
    "mtime_bound-4": ("find /app/data -type f -exec touch {} +", "true", NOTHING),
}
"""By name: what happens before and after the reference solution, and the reward it leads to.

Either a false result is rewarded, or a right one is not. `machine_bound-4`, which demands a speed,
is not here: a slower machine is not.
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with ways.opened("bubblewrap", tmp_path_factory.mktemp("held-out")) as backend:
        yield Runner(backend)


def _disturbed(entry: Entry) -> Bundle:
    """The bundle whose solution does more."""
    before, after, _ = SHOWN[entry.name]
    found = re.search(r"/app/out/[\w.-]+", entry.bundle.text("tests/test_outputs.py"))
    assert found
    head, rest = entry.bundle.text("solution/solve.sh").split("set -euo pipefail\n")
    script = f"{head}set -euo pipefail\nOUT={found[0]}\n{before}\n{rest}\ncd /app\n{after}\n"
    return texts(entry.bundle, {"solution/solve.sh": script})


@pytest.mark.slow
@pytest.mark.bubblewrap
@pytest.mark.parametrize("name", [name for name in ENTRIES if name in SHOWN])
def test_each_is_solved_and_still_wrong(runner: Runner, name: str) -> None:
    runner.prepare(image_spec(ENTRIES[name].bundle))
    case = Case(name, ENTRIES[name].bundle)
    if not name.startswith("chance_order"):
        assert wrong_result("oracle", runner.run(case.trial("oracle"))) == ""
    assert wrong_result("nop", runner.run(case.trial("nop"))) == ""
    shown = runner.run(Case(name, _disturbed(ENTRIES[name])).trial("oracle"))
    low, high = SHOWN[name][2]
    assert shown.reward is not None, shown.error
    assert low <= shown.reward <= high, shown.verifier_output.decode(errors="replace")

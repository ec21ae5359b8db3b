"""The corpus that scores the gates, how it is scored, and a share of it put before the gates."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from bench.cases import BenchError
from bench.corpus.builtin import MUST_CATCH, built_in
from bench.corpus.entries import SOUND, Entry, read_corpus, shared_out
from bench.corpus.gitting import Repository
from bench.scoring import Answer, Rate, Spent, false_alarms, per_gate, per_kind, recall
from evolution.contracts import GateResult, GateStatus
from evolution.gates.git_packs import pack_objects
from evolution.writing import write_bundle
from tests.conftest import ROOT
from tests.evolution.sample_bundles import sample_bundle

TODAY = date(2026, 3, 1)


# -- the corpus that is made by code ------------------------------------------------------------


def test_the_corpus_has_what_it_promises() -> None:
    entries = built_in(TODAY)
    counts = Counter(entry.label for entry in entries)
    assert counts.pop(SOUND) == 150
    assert all(counts[kind] >= 20 for kind in MUST_CATCH)
    assert len(counts) - len(MUST_CATCH) >= 14
    assert min(counts.values()) >= 5
    assert len({entry.name for entry in entries}) == len(entries)
    assert len({entry.bundle.digest for entry in entries}) == len(entries)
    styles = {entry.name.rpartition("-")[0] for entry in entries if entry.is_sound}
    assert len(styles) >= 30
    assert {entry.origin for entry in entries if entry.is_sound} == {"imported", "made"}


def test_the_corpus_is_the_same_every_time() -> None:
    first, again = built_in(TODAY), built_in(TODAY)
    assert [e.bundle.digest for e in first] == [e.bundle.digest for e in again]
    later = built_in(date(2027, 3, 1))
    changed = {one.label for one, two in zip(first, later, strict=True) if one != two}
    assert changed == {"time_bomb"}


def test_sound_ones_are_compared_with_other_styles_only() -> None:
    for entry in built_in(TODAY):
        if entry.is_sound:
            style = entry.name.rpartition("-")[0]
            assert len(entry.others) == 3
            assert all(name.rpartition("-")[0] != style for name, _ in entry.others)


def test_git_itself_reads_the_repositories(tmp_path: Path) -> None:
    repository = Repository()
    one = repository.commit({"a.txt": b"first\n", "b.txt": b"b" * 5000}, "Start", 1_700_000_000)
    two = repository.commit({"a.txt": b"second\n"}, "Go on", 1_700_000_100, one)
    repository.refs["refs/heads/main"] = two
    for name, packed in (("loose", ()), ("packed", tuple(repository.objects))):
        for path, data in repository.files(packed=packed).items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)

    def git(*words: str) -> str:
        command = ["git", "-c", "safe.directory=*", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    loose = tmp_path / "loose"
    assert git(f"--git-dir={loose}", "fsck", "--strict").strip() == ""
    assert git(f"--git-dir={loose}", "log", "--format=%H %s", "main").splitlines() == [
        f"{two} Go on",
        f"{one} Start",
    ]
    pack = tmp_path / "packed" / "objects" / "pack" / "pack-1.pack"
    git("index-pack", str(pack))
    assert git(f"--git-dir={tmp_path / 'packed'}", "show", f"{two}:a.txt") == "second\n"
    assert b"b" * 5000 in list(pack_objects(pack.read_bytes(), 10**6))


# -- a corpus on disk ---------------------------------------------------------------------------


def _corpus(folder: Path, manifest: str, name: str = "manifest.jsonl") -> Path:
    for bundle in ("one", "two"):
        write_bundle(sample_bundle(), folder / "bundles" / bundle)
    (folder / name).write_text(manifest)
    return folder


def test_a_manifest_of_lines_is_read(tmp_path: Path) -> None:
    rows = [
        {"path": "bundles/one", "label": "sound", "kind": "made"},
        {"path": "bundles/two", "label": "leak", "others": ["bundles/one"]},
    ]
    text = "\n".join(map(json.dumps, rows)) + "\n\n"
    one, two = read_corpus(_corpus(tmp_path, text))
    assert (one.name, one.label, one.origin, one.is_sound) == ("bundles/one", SOUND, "made", True)
    assert (two.label, two.origin, two.is_sound) == ("leak", "imported", False)
    assert [name for name, _ in two.others] == ["bundles/one"]
    assert one.bundle == sample_bundle()


def test_a_manifest_of_tables_is_read(tmp_path: Path) -> None:
    text = '[[bundle]]\npath = "bundles/one"\nlabel = "sound"\n'
    (one,) = read_corpus(_corpus(tmp_path, text, "manifest.toml"))
    assert (one.name, one.origin) == ("bundles/one", "imported")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("{", "Expecting property name"),
        ("[1]", "manifest.jsonl:1: not an object"),
        ('{"path": "bundles/one"}', "`path` and `label`"),
        ('\n{"path": "bundles/one", "label": "sound", "kind": "own"}', ":2: `kind` is one of"),
        ('{"path": "bundles", "label": "sound"}', "holds 2 bundles, not one"),
        ('{"path": "nowhere", "label": "sound"}', "holds 0 bundles, not one"),
        ('{"path": "bundles/one", "label": "x", "others": "a"}', "`others` has to be a list"),
        ('{"path": "bundles/one", "label": "x", "others": [1]}', "`others` has to be a list"),
        ('{"path": "bundles/one", "label": "x\\u001b[2J"}', "`path` and `label`"),
        ('{"path": "\\ud800", "label": "x"}', "`path` and `label`"),
        (f'{{"path": "{"a" * 5000}", "label": "x"}}', ":1: File name too long"),
        ("[" * 100_000, "recursion"),
        ("\n", "no bundle is listed"),
    ],
)
def test_a_wrong_manifest_is_one_line(tmp_path: Path, manifest: str, said: str) -> None:
    with pytest.raises(BenchError) as error:
        read_corpus(_corpus(tmp_path, manifest))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_manifest_of_anything_but_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"manifest\.toml: the bundles have to be"):
        read_corpus(_corpus(tmp_path, "bundle = 3", "manifest.toml"))


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match=r"manifest\.jsonl and manifest\.toml has to be there"):
        read_corpus(tmp_path)


def test_a_share_holds_some_of_every_label() -> None:
    entries = built_in(TODAY)
    tenth = shared_out(entries, 0.1)
    assert tenth == shared_out(entries, 0.1)
    counts, all_counts = Counter(e.label for e in tenth), Counter(e.label for e in entries)
    assert set(counts) == set(all_counts)
    assert counts[SOUND] == 15
    assert len({e.name for e in tenth}) == len(tenth)
    assert sorted(e.name for e in shared_out(entries, 1.0)) == sorted(e.name for e in entries)


# -- scoring ------------------------------------------------------------------------------------


def _answer(label: str, **statuses: GateStatus) -> Answer:
    gates = tuple(GateResult(name, 1, status, "") for name, status in statuses.items())
    entry = Entry(label, label, sample_bundle())
    return Answer(entry, gates, {"oracle": Spent(40, 2.5)}, 1.0)


P, F, I = GateStatus.PASSED, GateStatus.FAILED, GateStatus.INCONCLUSIVE  # noqa: E741
ANSWERS = [
    _answer(SOUND, oracle=P, leak=P),
    _answer(SOUND, oracle=P, leak=F),
    _answer("leak", oracle=P, leak=F),
    _answer("leak", oracle=P, leak=I),
    _answer("flaky", oracle=F),
    _answer("flaky", oracle=P),
]


def test_an_inconclusive_answer_catches_nothing() -> None:
    assert (recall(ANSWERS).count, recall(ANSWERS).of) == (2, 4)
    assert (false_alarms(ANSWERS).count, false_alarms(ANSWERS).of) == (1, 2)
    assert [answer.is_wrong for answer in ANSWERS] == [False, True, False, True, False, True]
    kinds = per_kind(ANSWERS)
    assert list(kinds) == ["flaky", "leak"]
    assert (kinds["leak"]["share"], kinds["leak"]["by"]) == (0.5, {"leak": 1})
    assert (kinds["leak"]["inconclusive"], kinds["flaky"]["inconclusive"]) == (1, 0)


def test_gates_are_counted_apart() -> None:
    gates = per_gate(ANSWERS)
    assert (gates["leak"]["defects"], gates["leak"]["false_alarms"]) == (1, 1)
    assert gates["leak"]["inconclusive"] == Rate(1, 4).as_dict()
    assert (gates["oracle"]["sandboxes"], gates["oracle"]["core_seconds"]) == (40.0, 2.5)


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [(0, 150, 0.0, 0.0243), (150, 150, 0.9757, 1.0), (19, 20, 0.7513, 0.9987), (0, 0, 0.0, 1.0)],
)
def test_intervals_are_those_of_clopper_and_pearson(
    count: int, of: int, low: float, high: float
) -> None:
    assert Rate(count, of).interval == pytest.approx((low, high), abs=5e-5)


# -- the gates themselves, on a share -----------------------------------------------------------


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "bench/gates.py", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_what_cannot_be_scored_is_one_line(tmp_path: Path) -> None:
    done = _run("--corpus", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    done = _run("--curve", "0", "--home", str(tmp_path))
    assert (done.returncode, done.stderr) == (2, "gates: --curve takes 1 trial or more, not 0\n")
    done = _run("--kinds", "nonsense")
    assert (done.returncode, done.stderr) == (2, "gates: no bundle is labelled nonsense\n")


PREFIX = "oracle_broken,leak,git_history,ill_formed,no_image,missing_reward,rewards_disagree"
PREFIX += ",missing_tool,background_needed,wrong_user,network_in_solution,near_duplicate"


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_tenth_of_what_the_first_gates_decide_is_caught(tmp_path: Path) -> None:
    done = _run("--kinds", PREFIX, "--share", "0.1", "--home", str(tmp_path), "--json")
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["wrong"] == [], done.stderr
    assert (done.returncode, figures["recall"], figures["false_alarms"]) == (0, 1.0, 0)
    assert figures["defects"] == sum(kind["of"] for kind in figures["per_kind"].values())
    assert set(figures["per_kind"]) == set(PREFIX.split(","))
    assert figures["per_gate"]["leak"]["defects"] > 0


@pytest.mark.slow
@pytest.mark.bubblewrap
def test_a_sound_one_passes_all_gates_and_a_weak_one_does_not(tmp_path: Path) -> None:
    names = "region_totals-0,weak_tests-0"
    done = _run("--names", names, "--home", str(tmp_path), "--json")
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["wrong"] == [], done.stderr
    assert (figures["sound"], figures["defects"], figures["recall"]) == (1, 1, 1.0)
    assert figures["core_seconds_per_matrix"] > 0
    assert 60 < figures["sandboxes_per_matrix"] <= 180
    assert "95 % interval" in done.stdout

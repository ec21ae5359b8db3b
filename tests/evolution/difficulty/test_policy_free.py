"""D_T: mechanical reading, a frozen reference, bounded and monotone figures."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.difficulty.extraction import (
    Skill,
    argument_kinds,
    file_kind,
    program_name,
    scenario_kinds,
    shell_skills,
    trace_skills,
)
from evolution.difficulty.policy_free import (
    HIGHEST_RARITY,
    REFERENCE_SHA256,
    measure,
    reference,
    reference_digest,
)
from evolution.sequence import Pair
from sandbox.contracts import SandboxFile, Trace

PAIRS = (Pair("a rotated log", "count requests"), Pair("a table", "join it"))
TRACE = Trace(
    read=("/app/data/access.log.2", "/app/data/hosts.csv", "/app/out/hits.csv", "/etc/passwd"),
    written=("/app/out/hits.csv",),
    programs=("solve.sh", "awk", "python3"),
    commands=(
        ("/solution/solve.sh",),
        ("mkdir", "-p", "/app/out"),
        ("gawk", "{print $1}", "/app/data/access.log.2"),
        ("/usr/bin/python3.11", "/solution/join.py", "/app/data/hosts.csv"),
    ),
)
SOURCES = (
    SandboxFile("join.py", b"import csv, os\nfrom zlib import crc32\n"),
    SandboxFile("unused.py", b"import lzma\n"),
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/app/access.log", ".log"),
        ("/app/access.log.12", ".log"),
        ("/app/access.log.2.gz", ".gz"),
        ("/app/DATA.CSV", ".csv"),
        ("Makefile", "makefile"),
        ("/srv/.htaccess", ".htaccess"),
        ("/srv/README", "(none)"),
        ("/srv/x.a-very-long-extension", "(other)"),
        ("'*.jpg'", ".jpg"),
    ],
)
def test_the_kind_of_a_file(path: str, kind: str) -> None:
    assert file_kind(path) == kind


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("/usr/bin/python3.11", "python3"),
        ("mawk", "awk"),
        ("/bin/bash", None),
        ("mktemp", None),
        ("./run.sh", None),
        ("sha256sum", "sha256sum"),
        ("7", None),
    ],
)
def test_the_name_of_a_program(word: str, name: str | None) -> None:
    assert program_name(word) == name


def test_shell_text_is_read_command_by_command() -> None:
    script = "cat <<'EOF' > x.py\nimport os; tar x\nEOF\n"
    text = script + "sudo tar xf a.tgz && sort 'b c' | xargs -0 rm # ls"
    assert {skill.token for skill in shell_skills(text)} == {"cat", "tar", "sort", "rm"}
    assert Skill("tar", (".tgz",)) in shell_skills(text)
    assert {skill.token for skill in shell_skills("awk '{print; next}' f.txt")} == {"awk"}


def test_arguments_name_kinds_of_files() -> None:
    assert argument_kinds(["-x.y", "/app/a.log", "b.csv", "plain", "./"]) == (".csv", ".log")


def test_a_situation_is_what_was_there_before_the_work() -> None:
    assert scenario_kinds(TRACE) == (".csv", ".log")


def test_python_is_told_apart_by_what_it_imports() -> None:
    assert {skill.token for skill in trace_skills(TRACE)} == {"mkdir", "awk", "python3"}
    tokens = {skill.token for skill in trace_skills(TRACE, SOURCES)}
    assert tokens == {"mkdir", "awk", "py:csv", "py:zlib"}


def test_the_reference_is_the_frozen_one() -> None:
    assert reference_digest() == REFERENCE_SHA256
    data = files("evolution.difficulty").joinpath("reference.json").read_bytes()
    assert len(data) < 100_000
    assert math.isclose(math.fsum(reference().scenarios.values()), 1.0)
    assert math.isclose(math.fsum(reference().programs.values()), 1.0)


def test_the_rarer_the_token_the_higher_its_rarity() -> None:
    known = reference()
    order = [".json", ".csv", ".gz", ".never-seen"]
    rarities = [known.scenario_rarity(kind) for kind in order]
    assert rarities == sorted(rarities)
    assert rarities[-1] == pytest.approx(HIGHEST_RARITY)
    assert known.skill_rarity(Skill("grep")) < known.skill_rarity(Skill("rsync"))
    assert known.skill_rarity(Skill("py:json")) < known.skill_rarity(Skill("py:lzma"))


def test_the_usual_tool_for_a_kind_is_less_rare_on_it() -> None:
    known = reference()
    assert known.skill_rarity(Skill("tar", (".tar",))) < known.skill_rarity(Skill("tar"))
    assert known.skill_rarity(Skill("wc", (".tar",))) > known.skill_rarity(Skill("wc"))


def test_the_measure_of_a_run() -> None:
    found = measure(PAIRS, TRACE, SOURCES)
    known = reference()
    assert found.length == 2
    assert found.total == pytest.approx(2 * (found.scenario_rarity + found.skill_rarity))
    assert [token for token, _ in found.skills] == ["py:zlib", "py:csv"]
    assert found.scenario_rarity == pytest.approx(
        (known.scenario_rarity(".csv") + known.scenario_rarity(".log")) / 2
    )
    assert found == measure(PAIRS, replace(TRACE, commands=TRACE.commands[::-1]), SOURCES)


def test_a_longer_sequence_over_the_same_run_is_harder_by_its_length() -> None:
    longer = (*PAIRS, Pair("a table", "sort it"), Pair("a table", "sum it"))
    assert measure(longer, TRACE).total > measure(PAIRS, TRACE).total


def test_an_empty_sequence_or_run_is_no_error() -> None:
    assert measure((), TRACE).total == 0.0
    assert measure(PAIRS, Trace()).total > 0.0


_PATHS = st.lists(
    st.sampled_from(["/app/a.txt", "/app/b.bin", "/srv/c.xyzzy", "/opt/d", "/app/e.log.1"]),
    unique=True,
)
_COMMANDS = st.lists(
    st.sampled_from([("cp", "a.txt"), ("sed", "-i"), ("xyzzy",), ("tar", "xf", "a.tar"), ("ls",)])
)


@given(_PATHS, _COMMANDS, st.sampled_from(["/app/new.pcap", "/app/new.txt"]), st.integers(1, 6))
def test_nothing_that_is_added_to_a_run_lowers_it(
    read: list[str], commands: list[tuple[str, ...]], extra: str, length: int
) -> None:
    sequence = tuple(Pair(str(n), "x") for n in range(length))
    run = Trace(read=tuple(read), commands=tuple(commands))
    more = Trace(read=(*read, extra), commands=(*commands, ("openssl", "enc")))
    before, after = measure(sequence, run), measure(sequence, more)
    assert before.total <= after.total <= 2 * length * HIGHEST_RARITY + 1e-6
    assert measure((*sequence, Pair("new", "x")), run).total > before.total

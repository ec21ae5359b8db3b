"""Mutants are real damages: of form unbroken, different from the whole, the same for a seed."""

from __future__ import annotations

import ast
import json
import random
import subprocess
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evolution.gates.mutation import python, shell
from evolution.gates.mutation.equivalence import (
    effective,
    is_equivalent,
    is_same_meaning,
    state_key,
)
from evolution.gates.mutation.mutant import show
from evolution.gates.mutation.solutions import solution_mutants
from evolution.gates.mutation.states import state_mutants, worked_on
from sandbox.contracts import ArtifactSpec, SandboxFile, VerifierSpec
from tests.evolution.real_sandbox import REPORT, SEEDS

PROGRAM = '''\
"""Says what it does."""
import sys

def total(rows, limit=10):
    """Adds up."""
    found = 0
    count = 0
    for row in rows:
        if row["n"] > limit and row["kind"] == "sale":
            found += row["n"]
            count += 1
    return f"{found} of {count:03d}"
'''
SCRIPT = """\
#!/bin/bash
set -euo pipefail
# a comment with 12 numbers
mkdir -p /app/out
count=3
if [ "$count" -gt 2 ]; then
    sort -u in.txt > out.txt
    head -n 5 out.txt
fi
python3 - <<'EOF'
limit = 4
print(limit + 1)
EOF
awk '
{ total += $1 }
END { print total }
' in.txt > total.txt
cat > notes <<END
sort -u stays 7
END
"""


def file(path: str, data: bytes | str) -> SandboxFile:
    return SandboxFile(path, data.encode() if isinstance(data, str) else data)


def test_python_is_damaged_in_every_way_and_still_parses() -> None:
    edits = python.edits(PROGRAM)
    assert {edit.kind for edit in edits} == {
        "alter a literal",
        "drop a statement",
        "reorder statements",
        "weaken a comparison",
    }
    for edit in edits:
        damaged = python.apply(PROGRAM, edit)
        assert ast.dump(ast.parse(damaged)) != ast.dump(ast.parse(PROGRAM)), edit


def test_doc_strings_and_pieces_of_formatted_strings_are_left_alone() -> None:
    for edit in python.edits(PROGRAM):
        damaged = python.apply(PROGRAM, edit)
        assert "Says what it does." in damaged
        assert "Adds up." in damaged
        assert 'f"{found} of {count:03d}"' in damaged


def test_text_that_is_no_python_offers_nothing() -> None:
    assert python.edits("def broken(:\n") == []
    assert python.edits("text = 'a\0b'") == []


def test_edits_keep_their_place_behind_letters_of_several_bytes() -> None:
    source = 'name = "Grüße, 東京"; limit = 7\n'
    damaged = {python.apply(source, edit) for edit in python.edits(source)}
    assert 'name = "Grüße, 東京"; limit = 8\n' in damaged


@pytest.mark.parametrize("seed", range(2))
def test_shell_is_damaged_without_breaking_its_form(seed: int) -> None:
    mutants = list(solution_mutants((file("solve.sh", SCRIPT),), random.Random(seed)))
    assert len({mutant.files for mutant in mutants}) > 10
    for mutant in mutants:
        assert mutant.files is not None
        text = mutant.files[0].data
        checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, check=False)
        assert checked.returncode == 0, mutant.diff
        assert b"sort -u stays 7" in text
        assert b"a comment with 12 numbers" in text


def test_python_inside_a_script_is_damaged_as_python() -> None:
    mutants = solution_mutants((file("solve.sh", SCRIPT),), random.Random(1))
    assert any("-print(limit + 1)" in m.diff and "+print((limit - 1))" in m.diff for m in mutants)


def test_shell_statements_inside_blocks_and_quotes_are_not_dropped() -> None:
    dropped = [edit for edit in shell.edits(SCRIPT) if edit.kind == "drop a statement"]
    lines = {SCRIPT.encode()[edit.start : edit.end].decode().strip() for edit in dropped}
    assert lines == {
        "mkdir -p /app/out",
        "count=3",
        "sort -u in.txt > out.txt",
        "head -n 5 out.txt",
    }


@pytest.mark.parametrize("slug", [path.name for path in sorted(SEEDS.iterdir()) if path.is_dir()])
def test_every_seed_offers_damages_to_its_solution(slug: str) -> None:
    folder = SEEDS / slug / "solution"
    files = tuple(
        file(str(path.relative_to(folder)), path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    )
    mutants = list(solution_mutants(files, random.Random(0)))
    assert len({mutant.files for mutant in mutants}) >= 10
    assert list(solution_mutants(files, random.Random(0))) == mutants


def test_the_driver_of_a_composed_solution_is_left_alone() -> None:
    files = (
        file("solve.sh", "#!/bin/bash\nfor step in /solution/steps/*; do $step; done\n"),
        file("steps/50-base.sh", "#!/bin/bash\necho 1 > a\necho 2 > b\n"),
    )
    assert {m.path for m in solution_mutants(files, random.Random(0))} == {"steps/50-base.sh"}


STATE = (
    file("/app/out/report.json", json.dumps({"a": 1, "b": [1, 2, {"c": "x"}]}, indent=2)),
    file("/app/out/rows.csv", "id,amount\n1,20\n2,30\n3,40\n"),
    file("/app/out/blob.bin", bytes(range(200))),
)


@pytest.mark.parametrize("seed", range(5))
def test_damaged_states_differ_in_one_file_and_are_seeded(seed: int) -> None:
    made = list(islice(state_mutants(STATE, random.Random(seed)), 40))
    assert made == list(islice(state_mutants(STATE, random.Random(seed)), 40))
    assert {mutant.path for mutant in made} == {one.path for one in STATE}
    kinds = {mutant.kind for mutant in made}
    assert {"delete the file", "empty the file", "alter a number", "drop a line"} <= kinds
    for mutant in made:
        assert mutant.state is not None
        assert len(set(STATE) - set(mutant.state)) == 1
        assert mutant.diff


def test_damage_can_be_aimed_at_some_files() -> None:
    aimed = islice(state_mutants(STATE, random.Random(0), ["/app/out/rows.csv"]), 10)
    assert {mutant.path for mutant in aimed} == {"/app/out/rows.csv"}
    assert list(state_mutants(STATE, random.Random(0), [])) == []


def test_what_was_delivered_as_it_lay_there_is_not_damaged() -> None:
    before = (file("/app/in.csv", "1,2\n"), file("/app/notes", "one\n"))
    after = (before[0], file("/app/notes", "two\n"), file("/app/out", "3\n"))
    assert worked_on(after, before) == ["/app/notes", "/app/out"]
    made = islice(state_mutants(after, random.Random(1), worked_on(after, before)), 40)
    assert {mutant.path for mutant in made} == {"/app/notes", "/app/out"}
    assert worked_on(before[:1], before) is None


def test_the_search_ends_where_nothing_is_left_to_damage() -> None:
    made = list(state_mutants((file("/app/out/n", "\n"),), random.Random(0)))
    assert {mutant.kind for mutant in made} == {"delete the file", "empty the file"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4), st.integers(0, 1000))
def test_any_bytes_can_be_damaged(contents: list[bytes], seed: int) -> None:
    state = tuple(file(f"/app/out/{at}", data) for at, data in enumerate(contents))
    for mutant in islice(state_mutants(state, random.Random(seed)), 20):
        assert mutant.state != state


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.integers(0, 1000))
def test_no_script_breaks_the_search_for_damages(text: str, seed: int) -> None:
    for name in ("solve.sh", "work.py"):
        for mutant in solution_mutants((file(name, text),), random.Random(seed)):
            assert mutant.files != (file(name, text),)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}\n', True),
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}\n{"a": 2}\n', '{"a":1}\n{"a":2}', True),
        ('{"a": 1}\n{"a": 2}\n', '{"a": 2}\n{"a": 1}\n', False),
        ("a,b \nc\n", "a,b\nc", True),
        ("a\nb\n", "b\na\n", False),
        ("a\n\nb\n", "a\nb\n", False),
        ("12", "12.0", False),
    ],
)
def test_what_means_the_same(one: str, two: str, same: bool) -> None:
    assert is_same_meaning(file("f", one), file("f", two)) is same
    assert is_same_meaning(file("f", two), file("f", one)) is same


def test_a_deleted_file_that_the_image_holds_is_there_again_unless_its_folder_is_carried() -> None:
    one, two, result = file("/app/in/a", "1\n"), file("/app/in/b", "2\n"), file("/app/n", "1\n")
    files = VerifierSpec((), artifacts=(ArtifactSpec("/app/in/a"), ArtifactSpec("/app/n")))
    whole = effective(files, (one,), (one, result))
    assert is_equivalent(whole, effective(files, (one,), (result,)))
    assert not is_equivalent(whole, effective(files, (one,), (one,)))
    folder = VerifierSpec((), artifacts=(ArtifactSpec("/app/in/"), ArtifactSpec("/app/n")))
    whole = effective(folder, (one, two), (one, two, result))
    assert not is_equivalent(whole, effective(folder, (one, two), (two, result)))
    assert is_equivalent(whole, effective(folder, (one, two), (result,))), "no folder was left"


def test_files_that_are_only_added_are_no_damage() -> None:
    verifier = VerifierSpec((), artifacts=(ArtifactSpec("/app/out"),))
    whole = effective(verifier, (), (file("/app/out/n", "1\n"),))
    more = effective(verifier, (), (file("/app/out/n", "1\n"), file("/app/out/scratch", "x")))
    assert is_equivalent(whole, more)
    assert state_key(whole) != state_key(more)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 900 + "1" + "]" * 900,
        '["\\ud800", 1]',
        "9" * 5000 + " lines\nand more\n",
        "[" + "9" * 5000 + "]\n",
    ],
    ids=["open", "deep", "surrogate", "number", "number in JSON"],
)
def test_strange_results_are_damaged_and_compared_like_any_other(text: str) -> None:
    state = (file("/app/out/n", text),)
    assert list(islice(state_mutants(state, random.Random(0)), 8))
    assert is_same_meaning(state[0], file("/app/out/n", f"{text} "))
    assert not is_same_meaning(state[0], file("/app/out/n", text[1:]))


@pytest.mark.parametrize(
    "source",
    ['"""A\rB"""\nx = 1\ny = 2\n', f"x = {'(' * 150}1{')' * 150}\n", f"x = 0x{'f' * 5000}\n"],
)
def test_strange_programs_are_damaged_or_left_alone(source: str) -> None:
    for edit in python.edits(source):
        python.apply(source, edit)
    found = shell.edits(f"head -n {'9' * 5000} in.txt\n")
    assert "alter a literal" not in {edit.kind for edit in found}


def test_a_diff_is_short_and_says_when_a_file_is_gone() -> None:
    assert show(b"a\nb\n", b"a\nc\n").splitlines()[1:] == [" a", "-b", "+c"]
    assert show(b"a", None) == "(the file is gone)"
    assert show(b"\0\1", b"\0") == "(2 bytes before, 1 after)"
    assert len(show(b"x\n" * 500, b"").splitlines()) == 17


def test_the_example_program_has_damages_of_every_kind() -> None:
    kinds = {edit.kind for edit in python.edits(REPORT)}
    assert {"drop a statement", "alter a literal"} <= kinds


def test_names_and_json_that_are_no_unicode_have_a_key_of_their_own() -> None:
    latin, other = (byte.decode(errors="surrogateescape") for byte in (b"caf\xe9", b"caf\xe8"))
    keys = {state_key({name: SandboxFile(name, b"1")}) for name in (latin, other, "caf")}
    assert len(keys) == 3
    said = state_key({"a.json": SandboxFile("a.json", b'{"a": "\\ud800"}')})
    assert said != state_key({"a.json": SandboxFile("a.json", b'{"a": "\\ud801"}')})


def test_program_text_has_fewer_turns_than_the_data_beside_it() -> None:
    script = file("/app/out/run.sh", "#!/bin/sh\nmkdir -p a\nmkdir -p b\necho 1 2 3\n")
    rows = file("/app/out/rows.txt", "".join(f"row {number}\n" for number in range(40)))
    made = list(islice(state_mutants((script, rows), random.Random(1)), 20))
    assert 2 <= sum(mutant.path == script.path for mutant in made) <= 5
    alone = list(islice(state_mutants((script,), random.Random(1)), 20))
    assert len(alone) == 20

"""Bad input through the commands: one clear line each, and the rest goes on."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evolution.writing import write_bundle
from tests.webapp.rows import make_bundle
from webapp.models import Environment, Import, MeasuredTrial
from webapp.selectors.imports import funnel_of, refusals_of

pytestmark = pytest.mark.django_db


def _import(*paths: Path, expect: str = "") -> tuple[str, str]:
    out, errors = StringIO(), StringIO()
    if expect:
        with pytest.raises(CommandError, match=expect):
            call_command("import_environments", *map(str, paths), stdout=out, stderr=errors)
    else:
        call_command("import_environments", *map(str, paths), stdout=out, stderr=errors)
    return out.getvalue(), errors.getvalue()


def test_each_refusal_is_one_line_and_the_sound_ones_come_in(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write_bundle(make_bundle("good"), tree / "good")
    write_bundle(make_bundle("other", "Another text."), tree / "other")
    (tree / "no-config" / "tests").mkdir(parents=True)
    (tree / "no-config" / "instruction.md").write_text("Do it.")
    write_bundle(make_bundle("broken"), tree / "broken")
    (tree / "broken" / "task.toml").write_text("[task\nname = 3")
    write_bundle(make_bundle("escaping"), tree / "escaping")
    (tree / "escaping" / "solution" / "link").symlink_to("../../../../etc/passwd")
    out, errors = _import(tree, expect="3 refused")
    lines = errors.splitlines()
    assert len(lines) == 3
    assert any("no-config" in line and "task.toml" in line for line in lines)
    assert any("broken" in line and "TOML" in line for line in lines)
    assert any("escaping" in line and "link" in line for line in lines)
    assert "2 imported, 0 known, 3 refused" in out
    assert Environment.objects.count() == 2
    batch = Import.objects.get()
    assert batch.finished_at is not None
    refused = {
        entry.origin.rsplit("/", 1)[-1]: entry.file
        for entry in batch.entries.filter(environment=None)
    }
    assert refused == {"no-config": "", "broken": "task.toml", "escaping": "solution/link"}


def test_the_funnel_is_printed_and_always_adds_up(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("one", "two"):
        write_bundle(make_bundle(name), tree / name)
    write_bundle(make_bundle("one"), tree / "one-again")
    (tree / "no-config" / "tests").mkdir(parents=True)
    (tree / "no-config" / "instruction.md").write_text("Do it.")
    out, _ = _import(tree, tmp_path / "nowhere", expect="2 refused")
    funnel = [line.split() for line in out.split("─\n")[-1].splitlines() if line.strip()]
    assert [row[:2] for row in funnel] == [
        ["found", "5"],
        ["well-formed", "3"],
        ["seeds", "2"],
        ["runnable", "0"],
        ["verified", "0"],
    ]
    assert "1 the same as another" in out
    assert "2 not verified yet" in out
    batch = Import.objects.get()
    stages = {stage.label: stage.count for stage in funnel_of(batch)}
    assert stages["found"] == stages["well-formed"] + refusals_of(batch).count()
    again = StringIO()
    call_command("import_environments", "--report", str(batch.pk), stdout=again)
    assert again.getvalue().strip() in out
    for wrong in (["--report", "99"], [], ["--report", "1", str(tree)]):
        with pytest.raises(CommandError):
            call_command("import_environments", *wrong, stdout=StringIO())


def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    write_bundle(make_bundle(), tmp_path / "one")
    _import(tmp_path / "one")
    out, _ = _import(tmp_path / "one")
    assert "0 imported, 1 known" in out
    assert Environment.objects.count() == 1


def test_what_holds_no_environment_is_said(tmp_path: Path) -> None:
    _, errors = _import(tmp_path / "nowhere", expect="1 refused")
    assert "no such file or folder" in errors
    (tmp_path / "empty").mkdir()
    _import(tmp_path / "empty", expect=r"refused|no environment")


def test_measured_trials_wait_for_their_environment_and_are_stored_once(tmp_path: Path) -> None:
    csv = tmp_path / "trials.csv"
    head = "solver,task,trial,resolved,failure_mode,input_tokens,output_tokens,seconds\n"
    rows = [f"agent-a,good,{n},{int(n < 3)},unset,10,20,1.5\n" for n in range(1, 5)]
    csv.write_text(head + "".join(rows) + "agent-a,good,nine,1,unset,,,\n")
    out, errors = StringIO(), StringIO()
    with pytest.raises(CommandError, match="1 lines refused"):
        call_command("import_trials", str(csv), stdout=out, stderr=errors)
    assert "4 stored" in out.getvalue()
    assert f"{csv}:6:" in errors.getvalue()
    with pytest.raises(CommandError):
        call_command("import_trials", str(csv), stdout=out, stderr=errors)
    assert MeasuredTrial.objects.count() == 4
    write_bundle(make_bundle("good"), tmp_path / "good")
    _import(tmp_path / "good")
    environment = Environment.objects.get()
    assert environment.measured.count() == 4
    score = environment.scores.get(measure="pass_rate")
    assert score.n == 4
    assert score.low is not None
    assert score.high is not None
    assert score.low < 0.5 < score.high


def test_what_the_database_cannot_keep_stops_no_import(tmp_path: Path) -> None:
    config = make_bundle().by_path["task.toml"].data.decode()
    hostile = {
        "nul-keyword": config.replace('"text"', '"a\\u0000b"'),
        "nul-licence": config.replace("CC0-1.0", "a\\u0000b"),
        "nul-scenario": config.replace('"a file"', '"a\\u0000b"'),
        "sequence-number": config.replace("sequence = [", "sequence = 5 # ["),
        "long-name": config.replace("tests/count-lines", "tests/" + "x" * 5000),
    }
    for name, text in hostile.items():
        write_bundle(make_bundle(text=name), tmp_path / "tree" / name)
        (tmp_path / "tree" / name / "task.toml").write_text(text)
    out, _ = _import(tmp_path / "tree")
    assert "5 imported, 0 known, 0 refused" in out
    licences = Environment.objects.values_list("lineage__licence", flat=True)
    assert "a\\x00b" in licences


def test_a_hostile_name_neither_hides_nor_breaks_its_line(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "two\nlines\x1b[31m\u202e" / "tests").mkdir(parents=True)
    (tree / "two\nlines\x1b[31m\u202e" / "instruction.md").write_text("Do it.")
    unnamed = b"latin\xe9\x1b[31m".decode(errors="surrogateescape")
    write_bundle(make_bundle(), tree / unnamed)
    config = tree / unnamed / "task.toml"
    config.write_text(config.read_text().replace('[task]\nname = "tests/count-lines"', "[task]"))
    config.write_text(config.read_text().replace('keywords = ["text"]\n', ""))
    out, errors = _import(tree, tmp_path / "none\x1b[31m\nhere", expect="2 refused")
    assert len(errors.splitlines()) == 2
    assert "two\\nlines\\x1b[31m\\u202e" in errors
    assert "none\\x1b[31m\\nhere" in errors
    assert "latin\\udce9\\x1b[31m" in out

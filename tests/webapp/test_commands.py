"""Commands as people call them: help with examples, one line when something is wrong."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evolution.exporting import verify_export
from evolution.gates.policy import TABLE
from tests.evolution.real_sandbox import orders
from tests.webapp.rows import make_child, make_run, make_seed, make_user
from webapp.lifecycle import RunStatus
from webapp.management.reporting import find_environments
from webapp.models import Blob, EvolutionRun, Role
from webapp.services import datasets, environments, reviews

COMMANDS = sorted(
    path.stem
    for path in (Path(__file__).parents[2] / "webapp" / "management" / "commands").glob("[a-z]*.py")
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        call_command(command, "--help")
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert f"manage.py {command}" in text


@pytest.mark.django_db
def test_a_frozen_version_is_exported_to_a_folder_once(tmp_path: Path) -> None:
    cleo = make_user("cleo", Role.CURATOR)
    child = make_child(make_seed())
    reviews.decide(child.pk, cleo, "approved", child.digest)
    for _ in range(2):
        datasets.freeze("Set one", [child.pk], cleo)
    out = StringIO()
    call_command("export", "set-one", "--out", str(tmp_path), stdout=out)
    call_command("export", "Set one@1", "--out", str(tmp_path), stdout=out)
    assert out.getvalue().count("1 environments in ") == 2
    for name in ("set-one-v1", "set-one-v2"):
        assert verify_export(tmp_path / name) == ()
    with pytest.raises(CommandError, match="exists already"):
        call_command("export", "set-one", "--out", str(tmp_path))
    for unknown in ("set-one@3", "set-one@x", "nothing"):
        with pytest.raises(CommandError, match="no frozen version"):
            call_command("export", unknown, "--out", str(tmp_path))


@pytest.mark.django_db
def test_what_is_not_there_is_one_line() -> None:
    for command, *arguments in (
        ("verify",),
        ("verify", "nowhere"),
        ("evolve", "--seeds", "nowhere"),
        ("evolve", "--resume", "99"),
        ("evolve", "--resume", "0"),
        ("evolve", "--replay", "0"),
        ("evolve",),
        ("shell", "nowhere"),
        ("import_trials", "nowhere.csv"),
    ):
        with pytest.raises(CommandError) as error:
            call_command(command, *arguments, stdout=StringIO(), stderr=StringIO())
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "line",
    [
        "evolve --solve 1 --queue",
        "evolve --harden 1 --budget-usd 2",
        "evolve --resume 1 --step-tokens 9",
        "evolve --replay 1 --seed 4",
        "measure 1 --triage --attempts 5",
        "measure 1 --triage --sandbox docker",
    ],
)
def test_an_option_that_would_do_nothing_is_refused(line: str) -> None:
    command, *words = line.split()
    option = next(word for word in reversed(words) if word.startswith("--"))
    with pytest.raises(CommandError, match=f"^{option} does not go with --"):
        call_command(command, *words, stdout=StringIO(), stderr=StringIO())


@pytest.mark.bubblewrap
@pytest.mark.django_db(transaction=True)
def test_an_environment_that_cannot_be_read_hides_no_verdict_of_another() -> None:
    whole, broken = make_seed(is_valid=False), make_seed("other", is_valid=False)
    digest = next(str(row[2]) for row in broken.manifest if row[0] == "task.toml")
    Blob.objects.filter(digest=digest).update(data=b"damaged")
    out = StringIO()
    with pytest.raises(CommandError, match="2 of 2 are not valid"):
        call_command("verify", "--all", "--json", "--sandbox", "bubblewrap", stdout=out)
    said = {row["environment"]: row for row in json.loads(out.getvalue())["verifications"]}
    assert said[whole.pk]["verdict"] == "failed"
    assert said[whole.pk]["backend"] == "bubblewrap"
    assert said[broken.pk]["error"].startswith("CorruptStore: ")
    for environment in (whole, broken):
        environment.refresh_from_db()
    assert (whole.verification, broken.verification) == ("invalid", "errored")
    row = broken.verifications.get()
    assert (row.status, row.error) == ("errored", "the command that verified it met an error")


@pytest.mark.bubblewrap
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_full_protocol_asks_the_expensive_gates_too() -> None:
    seed, _ = environments.import_seed(orders(), name="tests/orders", origin="tests")
    out = StringIO()
    call_command("verify", str(seed.pk), "--full", "--json", "--sandbox", "bubblewrap", stdout=out)
    (row,) = json.loads(out.getvalue())["verifications"]
    assert (row["verdict"], row["depth"]) == ("passed", "full")
    assert list(row["gates"]) == list(TABLE)
    assert row["gates"]["oracle"]["figures"]["runs"] == 20
    assert row["sandboxes"] <= 180


@pytest.mark.django_db(transaction=True)
def test_a_run_whose_process_was_killed_can_be_resumed() -> None:
    make_seed()
    run = EvolutionRun.objects.create(name="killed", status=RunStatus.RUNNING, seed=1)
    out = StringIO()
    call_command("evolve", "--resume", str(run.pk), stdout=out, stderr=StringIO())
    run.refresh_from_db()
    assert run.status == RunStatus.COMPLETED
    assert "sandboxes" in out.getvalue()


@pytest.mark.django_db
def test_a_replay_of_a_replay_repeats_the_run_that_has_the_answers() -> None:
    seed = make_seed()
    first = make_run(seed)
    EvolutionRun.objects.filter(pk=first.pk).update(author="llm")
    for number in (1, 2):
        latest = EvolutionRun.objects.latest("pk")
        call_command("evolve", "--replay", str(latest.pk), "--queue", stdout=StringIO())
        assert EvolutionRun.objects.latest("pk").replay_of == first
        assert first.replays.count() == number


@pytest.mark.django_db
def test_a_name_means_the_seed_and_a_digest_means_one_environment() -> None:
    seed = make_seed()
    child = make_child(seed)
    assert list(find_environments(["count-lines"])) == [seed]
    assert list(find_environments([child.digest[:8]])) == [child]
    assert list(find_environments([str(child.pk), "tests/count-lines"])) == [seed, child]


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["²", "9" * 30, "9" * 5000, "\udcff", ""])
def test_a_name_that_can_be_no_environments_is_one_line(name: str) -> None:
    make_seed()
    with pytest.raises(CommandError, match="no environment"):
        find_environments([name])


@pytest.mark.bubblewrap
@pytest.mark.django_db
def test_a_shell_opens_in_the_sandbox_of_an_environment(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = make_child(make_seed())
    script = tmp_path / "script"
    script.write_text("cat /solution/solve.sh; ls -d /tests; exit 3\n")
    with script.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(CommandError, match="status 3"):
            call_command("shell", child.digest[:8], "--solution")
    said = capfd.readouterr()
    assert "echo 3 > /app/out" in said.out
    assert "harbor run" in said.err

"""Tests that fetch pytest are run by the toolchain: in a sandbox without a network, as they are."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.backends.fake import FakeBackend
from sandbox.contracts import (
    ArtifactSpec,
    Outcome,
    SandboxFile,
    SolverSpec,
    ToolchainUse,
    TrialResult,
    TrialSpec,
    VerifierSpec,
)
from sandbox.toolchain import TARGET, Toolchain, described, making
from sandbox.trial import Runner
from tests.conftest import ROOT
from tests.sandbox.conformance import image_spec

PYTEST = "-w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json"
GRADE = "if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
GET_UV = f"""set -e
apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env
set +e
uvx -p 3.13 {PYTEST} /tests/test_outputs.py -rA
{GRADE}
"""
FORMS = {
    "uvx": (True, GET_UV),
    "a path of one's own": (
        True,
        f"curl -LsSf https://astral.sh/uv/install.sh | sh\n"
        'export PATH="$HOME/.local/bin:/usr/bin:/bin"\n'
        f"uvx {PYTEST} /tests/test_outputs.py\n{GRADE}",
    ),
    "the installer as a file": (
        True,
        "curl -LsSfo /tmp/i.sh https://astral.sh/uv/install.sh && sh /tmp/i.sh\n"
        f"timeout 60 uvx {PYTEST} /tests/test_outputs.py\n{GRADE}",
    ),
    "a project": (
        True,
        "cd /tests\nuv init\nuv add pytest==8.4.1 pytest-json-ctrf\n"
        f"uv run pytest --ctrf /logs/verifier/ctrf.json test_outputs.py -rA\n{GRADE}",
    ),
    "an activated environment": (
        True,
        "uv venv .judge && source .judge/bin/activate\nuv pip install pytest pytest-json-ctrf\n"
        f"python -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py\n{GRADE}",
    ),
    "an environment by its name": (
        True,
        "uv venv\nuv pip install pytest pytest-json-ctrf\n.venv/bin/python -m pytest -c /dev/null"
        f" -p ctrf --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py\n{GRADE}",
    ),
    "pip": (
        False,
        "pip3 install --break-system-packages pytest==8.4.1 pytest-json-ctrf==0.3.5\n"
        f"pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA -v\n{GRADE}",
    ),
    "pip as a module": (
        False,
        "python3 -m pip install -q pytest pytest-json-ctrf || true\n"
        f"python3 -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py\n{GRADE}",
    ),
}
STOPS = "echo 'import os; os._exit(0)'"
COLLECTS = "printf '[pytest]\\naddopts = --collect-only\\n'"
PACKAGES = f"~/.local/lib/python3.{sys.version_info[1]}/site-packages"
NOTHING = "printf '#!/bin/sh\\n'"
CHEATS = {
    "uvx in the home": (
        f"mkdir -p ~/.local/bin; {NOTHING} > ~/.local/bin/uvx; chmod +x ~/.local/bin/uvx"
    ),
    "uvx on the path": f"{NOTHING} > /usr/local/bin/uvx; chmod +x /usr/local/bin/uvx",
    "curl on the path": f"{NOTHING} > /usr/local/bin/curl; chmod +x /usr/local/bin/curl",
    "python3 on the path": f"{NOTHING} > /usr/local/bin/python3; chmod +x /usr/local/bin/python3",
    "pytest.ini above": f"{COLLECTS} > /pytest.ini",
    "pytest.ini here": f"{COLLECTS} > pytest.ini",
    "conftest above": f"{STOPS} > /conftest.py",
    "conftest here": f"{STOPS} > conftest.py",
    "conftest of the tests": f"mkdir -p /tests; {STOPS} > /tests/conftest.py",
    "a start-up file": f"mkdir -p {PACKAGES}; {STOPS} > {PACKAGES}/sitecustomize.py",
    "a shadowed module": f"{STOPS} > pathlib.py",
    "a reward written before": "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
}
JUDGE = """\
from pathlib import Path


def test_answer():
    assert Path("/app/out/answer.txt").read_text() == "ONE\\n"


def test_place():
    assert Path.cwd() == Path("{cwd}")
"""
WORK = "mkdir -p out && tr a-z A-Z < data/one.txt > out/answer.txt"


def spec(
    script: str,
    command: str | None = WORK,
    use: ToolchainUse | None = None,
    more: Mapping[str, str] | None = None,
    **changes: object,
) -> TrialSpec:
    cwd = "/tests" if "cd /tests" in script else "/app"
    files = {
        "test.sh": f"#!/bin/bash\n{script}\n",
        "test_outputs.py": JUDGE.format(cwd=cwd),
        **(more or {}),
    }
    verifier = VerifierSpec(
        tuple(SandboxFile(path, text.encode()) for path, text in files.items()),
        artifacts=(ArtifactSpec("/app/out"),),
        timeout_seconds=60,
        toolchain=use or ToolchainUse(is_apt_replaced=True),
    )
    solver = SolverSpec("s", (), command, timeout_seconds=20)
    return TrialSpec(image_spec(), solver, replace(verifier, **changes))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return Toolchain(ROOT / "var" / "toolchain")


@pytest.fixture
def runner(bubblewrap: BubblewrapBackend, toolchain: Toolchain) -> Runner:
    return Runner(bubblewrap, toolchain=toolchain)


def names(result: TrialResult) -> dict[str, bool]:
    return {check.name: check.is_passed for check in result.checks}


@pytest.mark.bubblewrap
class TestReal:
    @pytest.mark.parametrize(("is_isolated", "script"), FORMS.values(), ids=FORMS)
    def test_each_form_judges_without_a_network(
        self, runner: Runner, is_isolated: bool, script: str
    ) -> None:
        use = ToolchainUse(is_isolated=is_isolated, is_apt_replaced=True)
        result = runner.run(spec(script, use=use))
        assert result.outcome is Outcome.PASS, result
        found = {name.split("::")[1]: passed for name, passed in names(result).items()}
        assert found == {"test_answer": True, "test_place": True}
        whose = "toolchain" if is_isolated else "image"
        assert result.toolchain.startswith(f"pytest 8.4.1 on the {whose}'s Python 3.")
        assert result.toolchain.endswith(" (mount)")
        assert f"tests were run by {result.toolchain}" in result.notes

    @pytest.mark.parametrize("form", ["uvx", "pip"])
    def test_wrong_work_fails_check_by_check(self, runner: Runner, form: str) -> None:
        is_isolated, script = FORMS[form]
        use = ToolchainUse(is_isolated=is_isolated, is_apt_replaced=True)
        result = runner.run(spec(script, "mkdir out && echo TWO > out/answer.txt", use))
        assert (result.outcome, result.reward) == (Outcome.FAIL, 0.0)
        assert result.failed_checks == {"test_outputs.py::test_answer"}

    def test_what_runs_the_tests_cannot_be_written(self, runner: Runner) -> None:
        attempt = f"mkdir out; echo x > {TARGET}/run.py || echo locked > out/answer.txt"
        result = runner.run(spec(GET_UV, attempt, is_separate=False))
        assert result.outcome is Outcome.FAIL, result
        assert b"Read-only" in result.solver_output

    def test_a_separate_solver_does_not_see_it(self, runner: Runner) -> None:
        result = runner.run(spec(GET_UV, f"ls {TARGET}; {WORK}"))
        assert b"No such file" in result.solver_output
        assert result.is_passed

    @pytest.mark.slow
    @pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
    def test_a_shared_root_cannot_change_who_judges(self, runner: Runner, cheat: str) -> None:
        lazy = f"mkdir -p out; echo wrong > out/answer.txt; {cheat}"
        result = runner.run(spec(GET_UV, lazy, is_separate=False))
        assert result.outcome is Outcome.FAIL, result
        assert "test_outputs.py::test_answer" in result.failed_checks

    def test_honest_work_passes_beside_all_of_them(self, runner: Runner) -> None:
        cheats = "; ".join(f"({cheat})" for cheat in CHEATS.values())
        result = runner.run(spec(GET_UV, f"{WORK}; {cheats}", is_separate=False))
        assert result.is_passed, result

    def test_further_packages_are_there_when_asked_for(self, runner: Runner) -> None:
        judge = "import requests\n\ndef test_it():\n    assert requests.__version__\n"
        more = {"test_outputs.py": judge}
        asked = ToolchainUse(packages=("requests",), is_apt_replaced=True)
        assert runner.run(spec(GET_UV, use=asked, more=more)).is_passed
        assert runner.run(spec(GET_UV, more=more)).outcome is Outcome.FAIL

    def test_a_configuration_of_the_tests_counts(self, runner: Runner) -> None:
        more = {
            "pytest.ini": "[pytest]\naddopts = -k answer\n",
            "conftest.py": "import pytest\n\n@pytest.fixture\ndef gift():\n    return 1\n",
            "test_outputs.py": JUDGE.format(cwd="/app").replace(
                "test_answer()", "test_answer(gift)"
            ),
        }
        result = runner.run(spec(GET_UV, more=more))
        assert names(result) == {"test_outputs.py::test_answer": True}

    def test_modules_in_the_working_folder_are_found_only_by_python_m(self, runner: Runner) -> None:
        more = {"test_outputs.py": "import answer\n\ndef test_it():\n    assert answer.X\n"}
        work = "mkdir out; echo X = 1 > out/answer.py"
        use = ToolchainUse(is_isolated=False, is_apt_replaced=True)
        scripts = {
            way: f"pip install pytest\ncd /app/out\n{way} /tests/test_outputs.py\n{GRADE}"
            for way in ("python3 -m pytest", "pytest")
        }
        results = {way: runner.run(spec(text, work, use, more)) for way, text in scripts.items()}
        assert results["python3 -m pytest"].is_passed
        assert results["pytest"].outcome is Outcome.FAIL

    def test_a_python_that_does_not_run_is_no_verdict(
        self, bubblewrap: BubblewrapBackend, toolchain: Toolchain, tmp_path: Path
    ) -> None:
        whole = Path(toolchain.mount().source)
        left_out = shutil.ignore_patterns("python")
        shutil.copytree(whole, tmp_path / whole.name, symlinks=True, ignore=left_out)
        crippled = Runner(bubblewrap, toolchain=Toolchain(tmp_path))
        script = f"PATH={TARGET}/bin\nuvx {PYTEST} /tests/test_outputs.py\n{GRADE}"
        result = crippled.run(spec(script))
        assert result.outcome is Outcome.INFRA_ERROR, result
        assert result.error.startswith("the toolchain could not run the tests: its Python does")
        assert result.rewards == ()

    def test_tests_that_never_start_it_are_told(self, runner: Runner) -> None:
        result = runner.run(spec("echo 1 > /logs/verifier/reward.txt"))
        assert result.is_passed
        assert result.toolchain == "pytest 8.4.1 (mount; not started by the tests)"


def test_without_a_toolchain_the_trial_says_so() -> None:
    result = Runner(FakeBackend()).run(spec(GET_UV))
    assert result.outcome is Outcome.INFRA_ERROR
    assert result.error == "the tests need the toolchain, and this runner was given none"


def test_a_toolchain_that_cannot_be_fetched_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    result = Runner(FakeBackend(), toolchain=Toolchain(tmp_path)).run(spec(GET_UV))
    assert result.outcome is Outcome.INFRA_ERROR
    assert result.error.startswith("the toolchain's packages cannot be fetched: ")
    assert result.error.endswith("so make its package index reachable and try again")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_every_package_is_locked_by_its_content() -> None:
    places = making.requirements()
    assert set(places) == {"lib", "extra/requests", "extra/pytest-timeout"}
    for line in "".join(places.values()).splitlines():
        assert "==" in line
        assert " --hash=sha256:" in line


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"pytest 8.4.1 on the moon's Python 3.13",
        b"\xff" * 9,
        b"pytest 8.4.1 on the image's Python 3.11 <b>",
    ],
)
def test_a_note_that_is_not_ours_is_not_shown(note: bytes) -> None:
    assert described(ToolchainUse(), note) == "pytest 8.4.1 (mount; not started by the tests)"

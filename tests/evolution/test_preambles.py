"""What foreign tests fetch before they judge: understood for certain, or refused by name.

The scripts are written here; each stands for a form that many public tests have.
"""

from __future__ import annotations

import pytest

from evolution.bundle import Bundle
from evolution.composition import composed
from evolution.execution import verifier_spec
from evolution.preambles import recognise
from evolution.shell_commands import read_script
from sandbox.contracts import SandboxFile, ToolchainUse
from tests.evolution.real_sandbox import orders

GRADE = "code=$?\nif [ $code -eq 0 ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt\n"
CTRF = "--ctrf /logs/verifier/ctrf.json"
GET_UV = "curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\nsource $HOME/.local/bin/env\n"

ISOLATED = {
    "uvx with long options over several lines": f"""
apt-get update
apt-get install -y curl
{GET_UV}
uvx \\
  --with pytest==8.4.1 \\
  --with pytest-json-ctrf==0.3.5 \\
  pytest {CTRF} /tests/test_state.py -rA
""",
    "uvx with a Python of its own and short options": f"""
apt-get update && apt-get install -y curl && rm -rf /var/lib/apt/lists/*
{GET_UV}
if [ "$PWD" = "/" ]; then
  echo "set a WORKDIR first: $PWD isn't one"
  exit 1
fi
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest {CTRF} /tests/test_outputs.py -rA
""",
    "quiet, and the path exported by hand": f"""
set -euo pipefail
apt-get update -qq
apt-get install -y -qq --no-install-recommends curl ca-certificates > /dev/null 2>&1
curl -LsSf https://astral.sh/uv/install.sh 2>/dev/null | sh > /dev/null 2>&1
export PATH="$HOME/.local/bin:$PATH"
status=0
uvx -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest {CTRF} /tests -v || status=$?
""",
    "only where uvx is missing": """
if ! command -v uvx >/dev/null 2>&1; then
  apt-get update
  apt-get install -y curl
  curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
  source "$HOME/.local/bin/env"
fi
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf "$REPORT" /tests/t.py
""",
    "a trap writes the reward of a broken run": f"""
set -e
finish() {{ if [ ! -s /logs/verifier/reward.txt ]; then printf 0 > /logs/verifier/reward.txt; fi; }}
trap finish EXIT
apt-get update
apt-get install -y curl
{GET_UV}
set +e
uvx -p 3.13 --with pytest==8.4.1 pytest /tests/test_outputs.py
""",
    "uv from pip": f"""
python -m pip install --no-cache-dir uv==0.9.5 >/logs/verifier/install.txt 2>&1
export PATH="$HOME/.local/bin:$PATH"
uvx -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest {CTRF} /tests/test_outputs.py -rA
""",
    "a project of its own": f"""
apt-get update
apt-get install -y curl
{GET_UV}
cd /tests
uv init
uv add pytest==8.4.1 pytest-json-ctrf==0.3.5
uv run pytest {CTRF} test_state.py -rA
""",
    "a project in which each package is added alone": f"""
uv init --python 3.12
uv add pytest==8.4.1
uv add pytest-json-ctrf==0.3.5
uv run pytest {CTRF} ../tests/test_outputs.py -rA
case $? in 0) echo 1;; *) echo 0;; esac > /logs/verifier/reward.txt
""",
    "an environment that is activated": f"""
{GET_UV}
uv venv -p 3.12 .judge
source .judge/bin/activate
uv pip install pytest==8.4.1 pytest-json-ctrf==0.3.5
pytest {CTRF} /tests/test_outputs.py
""",
    "an environment whose Python is named": """
uv venv && uv pip install pytest==8.4.1 pytest-json-ctrf==0.3.5
unset PYTEST_ADDOPTS
.venv/bin/python -m pytest -c /dev/null -p ctrf --ctrf /logs/verifier/ctrf.json /tests/t.py
""",
    "uv run with packages": f"""
uv run --with pytest==8.4.1 --with pytest-json-ctrf==0.3.5 pytest {CTRF} /tests/test_outputs.py
""",
    "uv tool run": "uv tool run --with pytest-json-ctrf pytest@8.4.1 /tests/test_outputs.py\n",
    "wget": f"""
apt-get install -y wget
wget -qO- https://astral.sh/uv/install.sh | sh
{GET_UV.splitlines()[1]}
uvx --with pytest-json-ctrf==0.3.5 pytest@8.4.1 {CTRF} /tests/test_outputs.py
""",
    "the installer as a file": f"""
curl -LsSf -o /tmp/install.sh https://astral.sh/uv/0.9.5/install.sh
sh /tmp/install.sh
timeout -k 5 300 uvx -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest {CTRF} /tests/t.py
""",
}
IN_THE_IMAGE = {
    "pip": f"pip install -q pytest==8.4.1 pytest-json-ctrf==0.3.5\npytest {CTRF} /tests/t.py -rA\n",
    "pip3, whatever the system says": f"""
pip3 install --break-system-packages \\
  pytest==8.4.1 \\
  pytest-json-ctrf==0.3.5
mkdir -p /logs/verifier
pytest {CTRF} /tests/test_outputs.py -rA -v
""",
    "pip as a module, which may fail": """
python3 -m pip install --break-system-packages -q pytest==8.4.1 2>/dev/null || true
cp /tests/test_outputs.py /app/test_outputs.py
python3 -m pytest /app/test_outputs.py -q
""",
    "the test is a condition": """
python -m pip install --no-cache-dir pytest==8.4.1 > /dev/null
if python -m pytest -q /tests/test_outputs.py; then echo 1; else echo 0; fi > /logs/verifier/r
""",
}
REFUSED = {
    "uvx -w pytest -w numpy==2.3.0 pytest /tests/t.py": "the toolchain has no numpy",
    "uvx -w pytest -w pytest-xdist pytest -n 2 /tests": "the toolchain has no pytest-xdist",
    "pip install pytest\npip install -r /tests/requirements.txt\npytest": (
        "it installs what a file or folder says (-r)"
    ),
    "pip install pytest -e .\npytest /tests": "it installs what a file or folder says (-e)",
    "pip install pytest git+https://example.org/x\npytest": (
        "it installs 'git+https://example.org/x', which is no plain requirement"
    ),
    "pip install pytest\nbash -c 'pytest /tests'": (
        "pytest or an installer is started through bash"
    ),
    "pip install pytest\ntimeout 60 python3 -m pytest /tests": (
        "pytest or an installer is started through timeout"
    ),
    "pip install pytest\npython3 -B -m pytest /tests": (
        "pytest or pip is started by python3 -B -m"
    ),
    "python3 - <<'X'\nprint('https://astral.sh/uv/install.sh')\nX\npytest /tests": (
        "it installs something in a here-document"
    ),
    "pip install uv\nuv sync\nuv run --with pytest pytest": "it runs uv sync",
    "cd /app\nuv pip install pytest\nuv run pytest /tests": (
        "uv runs pytest in a project of the environment's own"
    ),
    "curl -LsSf https://astral.sh/uv/install.sh | sh\nuv run /tests/judge.py": (
        "uv starts /tests/judge.py, not pytest"
    ),
    "pip install pytest\npython3 /tests/judge.py": "no pytest is started in the script itself",
    "pip install pytest\npipx install uv\npytest /tests": "it uses pipx",
    "pip install pytest\n/opt/venv/bin/pytest /tests": "it starts /opt/venv/bin/pytest by its path",
    "pip install pytest\nexport PYTEST_ADDOPTS=-x\npytest /tests": "it sets PYTEST_ADDOPTS",
    "pip install pytest\npytest '/tests": "the script cannot be read to its end",
}


def scripted(script: str, *more: SandboxFile, shell: str = "#!/bin/bash") -> list[SandboxFile]:
    return [SandboxFile("test.sh", f"{shell}\n{script}\n".encode()), *more]


@pytest.mark.parametrize("script", ISOLATED.values(), ids=ISOLATED)
def test_what_uv_would_fetch_is_replaced(script: str) -> None:
    found = recognise(scripted(script + GRADE))
    assert found is not None
    assert (found.refusal, found.remarks) == ("", ())
    assert found.use == ToolchainUse(is_isolated=True, is_apt_replaced=True)


@pytest.mark.parametrize("script", IN_THE_IMAGE.values(), ids=IN_THE_IMAGE)
def test_what_pip_would_fetch_is_replaced_and_runs_in_the_image(script: str) -> None:
    found = recognise(scripted(script))
    assert found is not None
    assert found.use == ToolchainUse(is_isolated=False, is_apt_replaced=True)
    assert not found.remarks


@pytest.mark.parametrize(("script", "reason"), REFUSED.items())
def test_what_is_not_understood_is_refused_by_name(script: str, reason: str) -> None:
    found = recognise(scripted(script))
    assert found is not None
    assert (found.use, found.refusal) == (None, reason)


@pytest.mark.parametrize(
    "script",
    [
        "exec python3 -I -B /tests/run_checks.py",
        "pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA",
        "python3 -m pytest /tests # the image has it: nobody has to pip install pytest",
        "go test ./... && echo 1 > /logs/verifier/reward.txt",
        "cat <<X\npytest\nX\n",
    ],
)
def test_tests_that_fetch_no_pytest_are_left_alone(script: str) -> None:
    assert recognise(scripted(script)) is None


def test_another_version_than_asked_for_is_said() -> None:
    found = recognise(scripted("pip install pytest==9.0.3 'requests>=2'\npytest /tests"))
    assert found is not None
    assert found.use is not None
    assert found.use.packages == ("requests",)
    assert found.remarks == (
        "the tests ask for pytest==9.0.3; pytest 8.4.1 is used",
        "the tests ask for requests>=2; requests 2.32.4 is used",
    )


def test_programs_that_the_tests_use_are_still_installed() -> None:
    script = f"apt-get update\napt-get install -y curl\n{GET_UV}uvx --with pytest pytest /tests"
    uses = SandboxFile("test_web.py", b'subprocess.run(["curl", "localhost"])')
    for files in (
        scripted(script, uses),
        scripted(f"{script}\ncurl localhost:8000"),
        scripted(f"apt install jq\n{script}"),
    ):
        found = recognise(files)
        assert found is not None
        assert found.use is not None
        assert not found.use.is_apt_replaced


def test_only_bash_is_understood() -> None:
    found = recognise(scripted("pip install pytest\npytest /tests", shell="#!/bin/sh"))
    assert found is not None
    assert found.refusal == "it is run by /bin/sh, not bash"


def test_a_composed_bundle_keeps_what_its_original_tests_need() -> None:
    script = f"#!/bin/bash\n{ISOLATED['a project of its own']}{GRADE}"
    bundle = orders(SandboxFile("tests/test.sh", script.encode(), 0o755))
    before, after = verifier_spec(bundle), verifier_spec(composed(bundle))
    assert before.toolchain == after.toolchain == ToolchainUse(is_apt_replaced=True)


def test_a_refusal_goes_to_the_notes_of_the_trial() -> None:
    script = b"#!/bin/bash\npip install pytest pandas\npytest /tests\n"
    spec = verifier_spec(orders(SandboxFile("tests/test.sh", script, 0o755)))
    assert spec.toolchain is None
    assert spec.remarks == (
        "the tests fetch what they need themselves, the toolchain stays out:"
        " the toolchain has no pandas",
    )


def test_the_toolchain_decides_the_trial() -> None:
    quiet = orders()
    fetching = SandboxFile("tests/test.sh", b"#!/bin/bash\npip install pytest\npytest /tests\n")
    assert verifier_spec(quiet).toolchain is None
    assert isinstance(quiet, Bundle)
    assert verifier_spec(orders(fetching)).toolchain == ToolchainUse(
        is_isolated=False, is_apt_replaced=True
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 'b  c' \"d $e\" f\\ g", [("a", "b  c", "d $e", "f g")]),
        ("a 2>&1 >/dev/null b <in c", [("a", "b", "c")]),
        ("if a; then b || c; fi | d &", [("a",), ("b",), ("c",), ("d",)]),
        ("x=$(a b) y='1' c # d e\nf", [("a", "b"), ("c",), ("f",)]),
        ("a \\\n  b\n", [("a", "b")]),
        ('echo "$(a b)" `c d`', [("a", "b"), ("c", "d"), ("echo", "$(a b)", "$()")]),
        ("a <<X >b\nc d\nX\ne", [("a",), ("e",)]),
        ("f() { a; }", [("f",), ("a",)]),
    ],
)
def test_commands_are_read(text: str, words: list[tuple[str, ...]]) -> None:
    script = read_script(text)
    assert script.is_readable
    assert [command.words for command in script.commands if command.words] == words

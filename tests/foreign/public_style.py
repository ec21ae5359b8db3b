"""Environments in the manner of public ones, written here: a shared verifier that fetches pytest.

None states a verifier mode, a sequence or (but one) its artifacts; the network is Harbor's default.
"""

from __future__ import annotations

from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile

FETCH_BY_UV = """\
#!/bin/bash
set -o pipefail

apt-get update
apt-get install -y curl
curl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh
source $HOME/.local/bin/env

if [ "$PWD" = "/" ]; then
  echo "No working directory is set."
  exit 1
fi

uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA 2>&1 \\
  | tee /logs/verifier/pytest.log

if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
FETCH_BY_PIP = """\
#!/bin/bash
mkdir -p /logs/verifier
python3 -m pip install --break-system-packages -q pytest==8.4.1 pytest-json-ctrf || true
python3 -m pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -q
status=$?
if [ $status -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
exit $status
"""
TASK = """\
version = "1.0"
{artifacts}
[metadata]
difficulty = "easy"
category = "data"
tags = ["csv", "reporting"]

[verifier]
timeout_sec = 120.0

[agent]
timeout_sec = 120.0

[environment]
build_timeout_sec = 600.0
cpus = 1
memory_mb = 1024
storage_mb = 10240
"""
PYTHON = "RUN apt-get update && apt-get install -y python3 && rm -rf /var/lib/apt/lists/*\n"
STOCK = "item,shelf,count\n" + "".join(
    f"item-{number:03d},{'ABCDE'[number % 5]},{number * 37 % 101}\n" for number in range(60)
)
TOTALS = {
    shelf: sum(number * 37 % 101 for number in range(60) if "ABCDE"[number % 5] == shelf)
    for shelf in "ABCDE"
}
INSTRUCTION = """\
Read `/app/stock.csv` (columns: item, shelf, count). Write `/app/report/totals.json`: an object
with one key per shelf and, as its value, the number of pieces on it. Write the shelf that holds
most to `/app/report/fullest.txt`, followed by a line feed.
"""
SOLVE = """\
#!/bin/bash
set -e
mkdir -p /app/report
python3 - <<'PY'
import csv, json
from collections import Counter

totals = Counter()
with open("/app/stock.csv", newline="") as file:
    for row in csv.DictReader(file):
        totals[row["shelf"]] += int(row["count"])
with open("/app/report/totals.json", "w") as file:
    json.dump(totals, file, sort_keys=True)
with open("/app/report/fullest.txt", "w") as file:
    file.write(max(totals, key=totals.get) + "\\n")
PY
"""
JUDGE = """\
import json
from pathlib import Path

TOTALS = {totals}


def test_totals():
    assert json.loads(Path("/app/report/totals.json").read_text()) == TOTALS


def test_fullest():
    fullest = max(TOTALS, key=TOTALS.get)
    assert Path("/app/report/fullest.txt").read_text() == fullest + "\\n"
"""
GREETING = """\
from pathlib import Path


def test_greeting():
    assert Path("/app/greeting.txt").read_text() == "Good day\\n"
"""


def stock(*, test: str = FETCH_BY_UV, artifacts: str = "") -> Bundle:
    """A report on an input file, in an image with Python."""
    dockerfile = f"FROM debian:bookworm-slim\n{PYTHON}RUN mkdir -p /app\nCOPY stock.csv /app\n"
    return _bundle(
        {
            "environment/Dockerfile": f"{dockerfile}WORKDIR /app\n",
            "environment/stock.csv": STOCK,
            "instruction.md": INSTRUCTION,
            "solution/solve.sh": SOLVE,
            "tests/test.sh": test,
            "tests/test_outputs.py": JUDGE.format(totals=TOTALS),
            "task.toml": TASK.format(artifacts=artifacts),
        }
    )


def greeting() -> Bundle:
    """One file to be written, in an image that has nothing but the base."""
    return _bundle(
        {
            "environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
            "instruction.md": "Write `Good day` and a line feed to `/app/greeting.txt`.\n",
            "solution/solve.sh": "#!/bin/bash\necho Good day > greeting.txt\n",
            "tests/test.sh": FETCH_BY_UV,
            "tests/test_outputs.py": GREETING,
            "task.toml": TASK.format(artifacts=""),
        }
    )


def _bundle(files: dict[str, str]) -> Bundle:
    return Bundle.of(
        SandboxFile(path, text.encode(), 0o755 if path.endswith(".sh") else 0o644)
        for path, text in files.items()
    )

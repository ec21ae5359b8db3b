"""Solution or tests within the solver's reach: found in every wrapping; look-alikes are let be."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import marshal
import os
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from evolution.bundle import Bundle
from evolution.contracts import GateResult, GateStatus, StepConfig
from evolution.gates import leak
from evolution.gates.case import Case
from evolution.gates.unpacking import Unpacker
from sandbox.contracts import SandboxFile
from tests.evolution.operators.subjects import SEEDS, seed
from tests.evolution.real_sandbox import CHECKS, REPORT, orders, subject_of


def judged(bundle: Bundle) -> GateResult:
    return leak.check(Case(subject_of(bundle), StepConfig(seed=1)))


def given(path: str, data: bytes) -> GateResult:
    """The answer for the small environment with one more file in its image."""
    return judged(orders(SandboxFile(f"environment/{path}", data)))


def tarred(name: str, data: bytes) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return target.getvalue()


def zipped(name: str, data: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return target.getvalue()


SOLUTION = REPORT.encode()
TESTS = orders().by_path["tests/checks.py"].data
WRAPPED = {
    "as it is": SOLUTION,
    "in a document": b"# How it was done\n\n" + SOLUTION + b"\nThat was all.\n",
    "with other blank lines and comments": SOLUTION.replace(b"\n", b"\n\n# note\n"),
    "gzip": gzip.compress(SOLUTION),
    "bzip2": bz2.compress(SOLUTION),
    "xz": lzma.compress(SOLUTION),
    "base64": base64.b64encode(SOLUTION),
    "base64 in lines": base64.encodebytes(SOLUTION),
    "base64 for addresses": b"token=" + base64.urlsafe_b64encode(SOLUTION),
    "hex": SOLUTION.hex().encode(),
    "escapes": "".join(f"\\x{byte:02x}" for byte in SOLUTION).encode(),
    "utf-16": SOLUTION.decode().encode("utf-16"),
    "tar": tarred("old/work", SOLUTION),
    "zip": zipped("notes", SOLUTION),
    "gzip in base64": base64.b64encode(gzip.compress(SOLUTION)),
    "base64 in a tar": tarred("cache/blob", base64.b64encode(SOLUTION)),
    "a loose git object": zlib.compress(b"blob %d\0" % len(SOLUTION) + SOLUTION),
}


@pytest.mark.parametrize("data", WRAPPED.values(), ids=WRAPPED.keys())
def test_the_solution_is_found_in_any_wrapping(data: bytes) -> None:
    answer = given("data/blob.bin", data)
    assert answer.status is GateStatus.FAILED
    assert answer.reason.startswith("environment/data/blob.bin")
    assert "holds solution/report.py" in answer.reason


@pytest.mark.parametrize("wrap", [bytes, gzip.compress, base64.b64encode], ids=lambda w: w.__name__)
def test_the_tests_are_found_too(wrap: type[bytes]) -> None:
    answer = given("data/old", wrap(TESTS))
    assert "holds tests/checks.py" in answer.reason


def test_compiled_tests_are_recognised_by_their_functions() -> None:
    more = TESTS + b"\n\ndef check_customers_are_known():\n    pass\n"
    code = marshal.dumps(compile(more, "/tests/checks.py", "exec"))
    bundle = orders(
        SandboxFile("tests/checks.py", more),
        SandboxFile("environment/data/__pycache__/checks.cpython-311.pyc", b"\0" * 16 + code),
    )
    answer = judged(bundle)
    assert answer.status is GateStatus.FAILED
    assert "is compiled from tests/checks.py" in answer.reason


def history(folder: Path, *, is_packed: bool) -> list[SandboxFile]:
    """A repository in which the solution was committed once and thrown away."""

    def git(*words: str) -> None:
        env = {
            **os.environ,
            **{
                f"GIT_{who}_{what}": "a@b"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        subprocess.run(["git", "-C", str(folder), *words], check=True, env=env, capture_output=True)

    git("init", "-q", "-b", "main")
    (folder / "README").write_text("Orders\n")
    git("add", ".")
    git("commit", "-qm", "start")
    (folder / "work.py").write_text(REPORT)
    git("add", ".")
    git("commit", "-qm", "work in progress")
    (folder / "work.py").write_text(REPORT.replace("sorted", "sorted") + "\nprint('done')\n")
    git("commit", "-qam", "more")
    if is_packed:
        git("repack", "-adq")
    git("reset", "-q", "--hard", "HEAD~2")
    return [
        SandboxFile(f"environment/repo/{path.relative_to(folder)}", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]


@pytest.mark.parametrize("is_packed", [False, True], ids=["loose", "packed"])
def test_what_was_committed_and_thrown_away_is_found(tmp_path: Path, is_packed: bool) -> None:
    files = history(tmp_path, is_packed=is_packed)
    assert not any(file.path.endswith("work.py") for file in files)
    answer = judged(orders(*files))
    assert answer.status is GateStatus.FAILED
    assert ".git/objects" in answer.reason


def test_expected_data_under_a_telling_name_is_found() -> None:
    expected = b'{"customer-1": 17, "customer-2": 18, "customer-3": 19, "customer-4": 20}\n'
    tests = SandboxFile("tests/expected.json", expected)
    for path in ("data/expected.json", "data/.answers", "golden/out.json"):
        answer = judged(orders(tests, SandboxFile(f"environment/{path}", expected)))
        assert answer.status is GateStatus.FAILED, path
    assert judged(orders(tests)).status is GateStatus.PASSED


@pytest.mark.parametrize(
    "line",
    ['ENV EXPECTED_TOTAL="86,117 cents"', "LABEL org.answer=86117cents", "ARG ANSWER=86117c"],
)
def test_an_answer_in_a_variable_or_a_label_is_found(line: str) -> None:
    value = line.split("=")[1].strip('"')
    dockerfile = orders().text("environment/Dockerfile") + line + "\n"
    checks = CHECKS % {"totals": {}} + f"\nWANTED = {value!r}\n"
    answer = judged(
        orders(
            SandboxFile("environment/Dockerfile", dockerfile.encode()),
            SandboxFile("tests/checks.py", checks.encode()),
        )
    )
    assert answer.status is GateStatus.FAILED
    assert "variable or label" in answer.reason


def test_a_solution_in_a_variable_is_found() -> None:
    text = (
        orders().text("task.toml") + f'env = {{ HINT = "{base64.b64encode(SOLUTION).decode()}" }}\n'
    )
    answer = judged(orders(SandboxFile("task.toml", text.encode())))
    assert "HINT" in answer.reason


def test_the_broken_form_of_a_repaired_program_is_no_leak() -> None:
    broken = SOLUTION.replace(b"len(days)", b"len(totals)")
    assert given("data/report.py", broken).status is GateStatus.PASSED
    assert given("data/report.py.bz2", bz2.compress(broken)).status is GateStatus.PASSED


def test_a_tool_that_tests_keep_a_copy_of_is_no_leak() -> None:
    tool = b"import sys\n\n\ndef convert(text):\n    return text.replace(',', ';')\n" * 3
    bundle = orders(
        SandboxFile("environment/data/tools/convert.py", tool),
        SandboxFile("tests/tools/convert.py", tool),
    )
    assert judged(bundle).status is GateStatus.PASSED


def test_visible_tests_that_the_instruction_names_are_given() -> None:
    visible = b"import orders\n\n\ndef test_sum():\n    assert orders.total([1, 2]) == 3\n" * 2
    told = orders().instruction + "\n`/app/repo/test_orders.py` must pass.\n"
    bundle = orders(
        SandboxFile("instruction.md", told.encode()),
        SandboxFile("environment/repo/test_orders.py", visible),
        SandboxFile("tests/test_orders.py", visible),
    )
    assert judged(bundle).status is GateStatus.PASSED
    unsaid = bundle.with_files([SandboxFile("instruction.md", orders().instruction.encode())])
    assert judged(unsaid).status is GateStatus.FAILED


def test_a_text_that_the_instruction_wants_to_the_letter_is_no_leak() -> None:
    text = "[service]\nname = orders\nuser = nobody\nrestart = always\nlog = /var/log/orders\n"
    solve = f"#!/bin/bash\nmkdir -p /app/out\ncat > /app/out/x <<'END'\n{text}END\n"
    bundle = orders(
        SandboxFile("solution/solve.sh", solve.encode(), 0o755),
        SandboxFile("instruction.md", f"Write exactly this:\n\n{text}".encode()),
    )
    assert judged(bundle).status is GateStatus.PASSED


def test_an_input_that_is_expected_back_is_no_leak() -> None:
    data = orders().by_path["environment/data/orders.csv"].data
    bundle = orders(
        SandboxFile("tests/original/orders.csv", data),
        SandboxFile("environment/data/backup.tar.gz", tarred("orders.csv", data)),
    )
    assert judged(bundle).status is GateStatus.PASSED


@pytest.mark.parametrize("slug", sorted(p.name for p in SEEDS.iterdir() if p.is_dir()))
def test_no_bundled_seed_leaks(slug: str) -> None:
    answer = judged(seed(slug))
    assert answer.status is GateStatus.PASSED, answer.reason


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b broken",
        b"PK\x03\x04 broken",
        b"PACK\0\0\0\2\xff\xff\xff\xff" + b"\x95" * 50,
        b"\xfd7zXZ broken",
        b"x\x9c broken",
        b"\0" * 257 + b"ustar" + b"\xff" * 300,
        b"\xff\xfe\x00\xd8",
        b"=" * 5000,
    ],
)
def test_broken_wrappings_end_the_search_only_there(data: bytes) -> None:
    assert given("data/blob", data).status is GateStatus.PASSED


def test_bombs_are_named_and_not_opened() -> None:
    bomb = gzip.compress(b"0" * 40_000_000)
    unpacker = Unpacker()
    assert sum(len(blob.data) for blob in unpacker.all_of([("bomb", bomb)])) == len(bomb)
    assert unpacker.skipped == ["bomb"]

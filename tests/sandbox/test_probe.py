"""What a machine lacks is said in one line, with the remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.backends.bubblewrap import probe
from sandbox.findings import remedy_for
from tests.sandbox.ordinary_user import run_as_ordinary_user

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.bubblewrap
def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    found = probe(tmp_path / "r", tmp_path / "c")
    assert [f.name for f in found if not f.is_ok] == []
    assert {"bubblewrap", "bubblewrap sandbox", "python3 in the sandbox", "trace"} <= {
        finding.name for finding in found
    }


_WITHOUT_NAMESPACES = """
import json, os, pathlib, sys, tempfile
uid, gid = os.geteuid(), os.getegid()
os.unshare(0x10000000)
pathlib.Path('/proc/self/setgroups').write_text('deny')
pathlib.Path('/proc/self/uid_map').write_text(f'0 {uid} 1')
pathlib.Path('/proc/self/gid_map').write_text(f'0 {gid} 1')
pathlib.Path('/proc/sys/user/max_user_namespaces').write_text('0')
from sandbox.backends.bubblewrap import probe
with tempfile.TemporaryDirectory() as home:
    found = probe(pathlib.Path(home, 'r'), pathlib.Path(home, 'c'))
print(json.dumps([(f.name, f.is_ok, f.detail) for f in found]))
"""


@pytest.mark.bubblewrap
def test_a_machine_without_user_namespaces_says_what_to_do() -> None:
    done = run_as_ordinary_user(_WITHOUT_NAMESPACES)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[-1][:2] == ["bubblewrap sandbox", False]
    assert "user namespace" in found[-1][2]
    assert "sysctl -w user.max_user_namespaces" in found[-1][2]


def test_a_folder_that_cannot_be_written_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = probe(tmp_path / "file" / "r", tmp_path / "c")
    assert not found[-1].is_ok
    assert "file" in found[-1].detail


def test_every_known_step_has_a_remedy() -> None:
    assert "6.6" in remedy_for("overlay file system")
    assert "container" in remedy_for("bubblewrap")
    assert remedy_for("something else") == ""


def test_the_package_stays_light() -> None:
    code = "import sandbox.contracts, sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert {"django", "ctypes", "subprocess", "socket"} & set(done.stdout.split()) == set()

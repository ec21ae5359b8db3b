"""What is in the tree, and what must not be in any file."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

AT_THE_ROOT = {
    "webapp",
    "evolution",
    "sandbox",
    "templates",
    "tests",
    "static",
    "seeds",
    "bench",
    "docs",
    "manage.py",
    "pyproject.toml",
    "requirements.lock",
    "Makefile",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "Dockerfile",
    "docker-compose.yml",
}
# In pieces, so that this file does not name them.
FORBIDDEN = [
    "/".join(("", "work", "main")),
    "/".join(("", "work", "shared")),
    "/".join(("", "root", ".pyenv")),
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry." + "npmjs.org",
    "deb." + "debian.org",
]


def tracked_files() -> list[Path]:
    """What the repository holds; in an unpacked archive, everything that is not ignored."""
    if (ROOT / ".git").exists():
        done = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        names = [name for name in done.stdout.split("\0") if name]
        return [path for name in names if (path := ROOT / name).is_file()]
    kept = [ROOT / name for name in AT_THE_ROOT]
    return [path for top in kept for path in ([top] if top.is_file() else top.rglob("*"))]


def test_nothing_unexpected_is_at_the_root() -> None:
    names = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert {name for name in names if not name.startswith(".")} <= AT_THE_ROOT


def test_no_file_names_a_machine_or_a_registry() -> None:
    found = []
    for path in tracked_files():
        if path.is_symlink():
            continue
        content = path.read_bytes()
        found += [
            f"{path.relative_to(ROOT)}: {text}" for text in FORBIDDEN if text.encode() in content
        ]
    assert not found


def lock_entries() -> dict[str, str]:
    """Each locked package, and the whole text of its entry."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", (ROOT / "requirements.lock").read_text())
    return {canonicalize_name(entry.split("==")[0]): entry for entry in entries if "==" in entry}


def test_the_lock_has_hashes_and_no_addresses() -> None:
    entries = lock_entries()
    assert len(entries) > 40
    assert all("--hash=sha256:" in entry for entry in entries.values())
    assert "://" not in "".join(entries.values())


def test_the_lock_has_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    entries = lock_entries()
    for requirement in map(Requirement, asked):
        entry = entries[canonicalize_name(requirement.name)]
        version = entry.split("==")[1].split()[0]
        assert requirement.specifier.contains(version), entry


def needed_at_run_time() -> set[str]:
    """The packages that our dependencies bring, by the metadata of what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    waiting = [Requirement(text) for text in project["project"]["dependencies"]]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        for extra in key[1] or {""}:
            for text in metadata.requires(key[0]) or []:
                wanted = Requirement(text)
                if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                    waiting.append(wanted)
    return {name for name, _ in seen}


def test_the_image_installs_what_runs_and_no_more() -> None:
    script = ROOT / ".make" / "runtime_lock.py"
    command = [sys.executable, str(script), str(ROOT / "requirements.lock")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    entries = [Requirement(line.rstrip(" \\")) for line in printed.splitlines() if "==" in line]
    # Like pip, which passes over what is for other platforms.
    kept = {entry.name for entry in entries if entry.marker is None or entry.marker.evaluate()}
    assert kept == needed_at_run_time()

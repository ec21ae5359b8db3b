"""Makes `reference.json`, once, from public data: counts only, nothing of the texts themselves.

    python -m evolution.difficulty.reference_corpus ENVIRONMENTS COMMANDS > reference.json

ENVIRONMENTS is the folder `environments_harbor` of the public repository
`zjysteven/terminal-bench-env` at aaad6aef (3,566 terminal environments), COMMANDS the file
`data/bash/all.cm` of `TellinaTool/nl2bash` at 466c5fe (12,607 shell commands that people wrote).

- scenario: in how many environments a kind of file is given, or named in the instruction
- module: in how many environments' Python files a module is imported
- program, in two corpora: in how many commands, and in how many environments' scripts, it is run
- joint: in how many commands a program is applied to a kind of file

The commands were collected around `find`, so that `find` itself is not counted in them.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from evolution.difficulty.extraction import (
    file_kind,
    python_modules,
    shell_skills,
)

RAREST = 3
"""A token that fewer documents have is left out: most often a slip of the mechanical reading."""
COLLECTED_AROUND = "find"
_PATH = re.compile(r"(?:/[\w.+-]+)+\.\w+")
_NOT_GIVEN = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml")


def _kept(counts: Counter[str]) -> dict[str, int]:
    return {token: count for token, count in sorted(counts.items()) if count >= RAREST}


def _environments(root: Path) -> tuple[int, Counter[str], Counter[str], Counter[str]]:
    kinds: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    programs: Counter[str] = Counter()
    folders = sorted(path for path in root.iterdir() if (path / "task.toml").is_file())
    for folder in folders:
        given = [
            path
            for path in (folder / "environment").rglob("*")
            if path.is_file() and path.name not in _NOT_GIVEN
        ]
        named = _PATH.findall((folder / "instruction.md").read_text(errors="replace"))
        kinds.update({file_kind(str(path)) for path in [*given, *named]})
        modules.update(_imported(given))
        scripts = (path.read_text(errors="replace") for path in given if path.suffix == ".sh")
        programs.update({skill.token for text in scripts for skill in shell_skills(text)})
    return len(folders), kinds, modules, programs


def _imported(paths: Iterable[Path]) -> set[str]:
    return {
        module
        for path in paths
        if path.suffix == ".py"
        for module in python_modules(path.read_text(errors="replace"))
    }


def _commands(path: Path) -> tuple[int, Counter[str], Counter[str]]:
    programs: Counter[str] = Counter()
    joint: Counter[str] = Counter()
    lines = path.read_text(errors="replace").splitlines()
    for line in lines:
        skills = [skill for skill in shell_skills(line) if skill.token != COLLECTED_AROUND]
        programs.update({skill.token for skill in skills})
        joint.update({f"{kind} {skill.token}" for skill in skills for kind in skill.kinds})
    return len(lines), programs, joint


def main(environments: Path, commands: Path) -> None:
    """Write the reference to standard output, the same bytes every time."""
    environment_count, kinds, modules, scripted = _environments(environments)
    command_count, programs, joint = _commands(commands)
    reference = {
        "sources": {
            "environments": {
                "repository": "zjysteven/terminal-bench-env",
                "commit": "aaad6aef",
                "documents": environment_count,
            },
            "commands": {
                "repository": "TellinaTool/nl2bash",
                "commit": "466c5fe",
                "documents": command_count,
            },
        },
        "scenario": _kept(kinds),
        "module": _kept(modules),
        "program": {"commands": _kept(programs), "environments": _kept(scripted)},
        "joint": _kept(joint),
    }
    json.dump(reference, sys.stdout, indent=0, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

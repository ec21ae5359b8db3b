"""What the documents say exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.conftest import ROOT

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    missing = [
        target
        for target in targets
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_exist(document: Path) -> None:
    text = document.read_text()
    verbs = set(re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^ {4})make ([\w-]+)", text, re.MULTILINE)) <= verbs
    assert set(re.findall(r"manage\.py (\w+)", text)) <= set(get_commands())


def test_every_variable_of_the_example_is_read() -> None:
    names = re.findall(r"^# ([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert len(names) > 8
    readers = [ROOT / "webapp" / "settings.py", ROOT / "docker-compose.yml"]
    text = "".join(path.read_text() for path in readers)
    assert [name for name in names if name not in text] == []

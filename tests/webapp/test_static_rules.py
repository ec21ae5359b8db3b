"""Rules of the templates, the views and the vendored files."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static").glob("*.js"))
STYLES = sorted((ROOT / "static").glob("*.css"))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_inline_code_or_style_and_marks_nothing_safe(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\|\s*safe\b|autoescape off|\bmark_safe\b", text)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|hx-on|js:", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"""(src|href)=["']https?://""", text)
    assert len(text.splitlines()) <= 150


def test_every_post_form_carries_its_token() -> None:
    for path in TEMPLATES:
        for form in re.findall(r'<form[^>]*method="post".*?</form>', path.read_text(), re.DOTALL):
            assert "csrf_token" in form, (path.name, form[:80])


def test_views_are_short() -> None:
    for path in sorted((ROOT / "webapp" / "views").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                lines = (node.end_lineno or 0) - node.lineno + 1
                assert lines <= 25, (path.name, node.name, lines)


@pytest.mark.parametrize("folder", ["static/vendor", "tests/browser/vendor"])
def test_vendored_files_are_the_published_ones_with_their_licences(folder: str) -> None:
    base = ROOT / folder
    manifest = json.loads((base / "manifest.json").read_text())
    listed = {name for package in manifest.values() for name in package["files"]}
    assert listed == {str(p.relative_to(base)) for p in base.rglob("*.js")}
    for package in manifest.values():
        for name, digest in package["files"].items():
            assert hashlib.sha256((base / name).read_bytes()).hexdigest() == digest
            assert (base / name).parent.joinpath("LICENSE").exists()
        assert package["version"]
        assert package["licence"]


def test_scripts_stay_within_their_budget() -> None:
    import gzip

    vendored = sorted((ROOT / "static" / "vendor").rglob("*.js"))
    normal = [*vendored, ROOT / "static" / "ratchet.js", ROOT / "static" / "review.js"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in normal) <= 25_000
    assert all(not re.search(r"\beval\(|new Function|innerHTML", p.read_text()) for p in SCRIPTS)


def test_style_sheets_stay_within_their_budget() -> None:
    sizes = {path.name: path.stat().st_size for path in STYLES}
    assert sizes.pop("ratchet.css") <= 19_000
    assert max(sizes.values()) <= 4_800


def test_every_class_that_is_styled_is_used() -> None:
    sources = [*TEMPLATES, *SCRIPTS, *(ROOT / "webapp").rglob("*.py")]
    words = set(re.findall(r"[\w-]+", "\n".join(path.read_text() for path in sources)))
    made = ("c-", "depth-", "dir-", "op-", "ramp-", "st-", "htmx-")
    for path in STYLES:
        selectors = re.sub(r"/\*.*?\*/|\"[^\"]*\"|[\w-]+:[^;{}]*;", "", path.read_text())
        for name in set(re.findall(r"\.([a-z][\w-]*)", selectors)):
            assert name in words or name.startswith(made), (path.name, name)

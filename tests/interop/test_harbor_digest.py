"""Our content digest is Harbor's, on trees of every odd shape."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evolution.bundle import Bundle
from evolution.harbor import strip_canary
from evolution.paths import tree_problems
from evolution.writing import write_bundle
from sandbox.contracts import SandboxFile
from tests.interop.conftest import Harbor

pytestmark = pytest.mark.interop

_NAMES = st.sampled_from(
    ["a", "b.txt", "c.pyc", "__pycache__", ".git", "x~", "ü", "tests", "solution", ".DS_Store"]
)
_TOPS = st.sampled_from(
    ["environment", "tests", "solution", "steps/one/tests", "steps/one", "docs", "."]
)
_PATTERNS = st.sampled_from(
    [
        "*.txt",
        "!b.txt",
        "/a",
        "a/",
        "**/b.txt",
        "tests",
        "# a comment",
        "",
        "*.pyc",
        "!a/",
        "x~",
        "ü",
    ]
)
_RULES = st.lists(_PATTERNS, max_size=4).map(lambda lines: "\n".join(lines).encode())


@st.composite
def _file(draw: st.DrawFn) -> SandboxFile:
    top = draw(_TOPS)
    parts = ([] if top == "." else [top]) + draw(st.lists(_NAMES, min_size=1, max_size=3))
    kind = draw(st.sampled_from(["data", "data", "data", "ignore", "link"]))
    if kind == "ignore":
        parts[-1] = ".harborignore"
        return SandboxFile("/".join(parts), draw(_RULES))
    if kind == "link":
        target = draw(st.sampled_from(["a", "b.txt", "../a", "../tests", "../../tests/a", "."]))
        return SandboxFile("/".join(parts), link=target)
    return SandboxFile("/".join(parts), draw(st.binary(max_size=3)))


@st.composite
def _tree(draw: st.DrawFn) -> Bundle:
    files = {file.path: file for file in draw(st.lists(_file(), min_size=1, max_size=10))}
    if draw(st.booleans()):
        files[".gitignore"] = SandboxFile(".gitignore", draw(_RULES))
    files["task.toml"] = SandboxFile("task.toml", b"")
    broken = tree_problems(files.values())
    sound = [file for path, file in files.items() if path not in broken]
    assume(not tree_problems(sound))
    # A file where a folder belongs has no digest: Harbor raises, and validation refuses it.
    assume(not {"tests", "solution"} & {file.path for file in sound})
    return Bundle.of(sound)


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(bundle=_tree())
def test_our_content_digest_is_harbors(harbor: Harbor, bundle: Bundle) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "task"
        write_bundle(bundle, place)
        answer = harbor.ask("digest", place)
    assert answer.get("digest") == bundle.harbor_digest, (answer, bundle.files)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.sampled_from(
            ["<!-- CANARY x -->", "# canary", "", "  ", "text", "#", "<!-- x -->", "#canary\r"]
        ),
        max_size=6,
    )
)
def test_canary_lines_go_where_harbor_takes_them_out(harbor: Harbor, lines: list[str]) -> None:
    text = "\n".join(lines)
    assert strip_canary(text) == harbor.ask("canary", text)["text"]

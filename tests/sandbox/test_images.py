"""Dockerfiles are read as Docker reads them, or refused by name."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.errors import ImageBuildFailed, Refused
from sandbox.images import apt_packages, expand, pairs, parse_dockerfile, words


def _steps(text: str) -> list[tuple[str, str]]:
    return [(step.keyword, step.text) for step in parse_dockerfile(text.encode())]


def test_comments_continuations_and_case() -> None:
    text = "# c\n\nfrom a\nRUN one \\\n  # between\n\n  && two \\\n\tthree\n  env A=1\n# end"
    assert _steps(text) == [("FROM", "a"), ("RUN", "one   && two \tthree"), ("ENV", "A=1")]


def test_here_documents_are_kept_as_they_are() -> None:
    text = "FROM a\nRUN <<EOF\n# not a comment\n  x \\\nEOF\nCOPY <<-'E' /a\n\ttab\nE\nUSER u\n"
    steps = parse_dockerfile(text.encode())
    assert steps[1].heredocs == (("<<EOF", b"# not a comment\n  x \\\n"),)
    assert steps[2].heredocs == (("<<-'E'", b"tab\n"),)
    assert steps[3].keyword == "USER"


def test_flags_are_split_off() -> None:
    step = parse_dockerfile(b"FROM a\nCOPY --chown=1:2 --chmod=755 a b /c/\n")[1]
    assert (step.flags, step.text) == ((("chown", "1:2"), ("chmod", "755")), "a b /c/")


@pytest.mark.parametrize(
    "text",
    [
        "FROM a\nENTRYPOINT x",
        "FROM a\nVOLUME /x",
        "FROM a\nHEALTHCHECK NONE",
        "FROM a\nONBUILD RUN x",
        "FROM a\nSTOPSIGNAL 9",
        "FROM a AS b\nFROM b",
        "FROM a\nCOPY --from=b /x /y",
        "FROM a\nRUN --mount=type=cache,target=/x y",
        "# escape=`\nFROM a",
    ],
)
def test_what_is_not_supported_names_docker(text: str) -> None:
    with pytest.raises(Refused, match="Docker"):
        parse_dockerfile(text.encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"RUN x", b"RUN x\nFROM a", b"FROM", b"FROM a\nRUN", b"\xff", b"FROM a\nRUN <<E\nx"],
)
def test_what_is_broken_is_the_bundles_fault(data: bytes) -> None:
    with pytest.raises(ImageBuildFailed):
        parse_dockerfile(data)


def test_arg_may_come_before_from() -> None:
    assert _steps("ARG V=1\nFROM a:$V") == [("ARG", "V=1"), ("FROM", "a:$V")]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$A/${A}x", "1/1x"),
        ("$B-${B}", "-"),
        ("${B:-d}${A:-d}", "d1"),
        ("${A:+y}${B:+y}", "y"),
        ("${B:-$A}", "1"),
        (r"\$A \\ \n", r"$A \ \n"),
        ("$", "$"),
    ],
)
def test_variables_are_expanded(text: str, value: str) -> None:
    assert expand(text, {"A": "1"}) == value


def test_env_pairs_in_both_forms() -> None:
    one, two = parse_dockerfile(b"FROM a\nENV A=1 B=\"x y\" C='$A' D=$Z\nENV E x y $Z\n")[1:]
    assert pairs(one, {"Z": "9"}) == [("A", "1"), ("B", "x y"), ("C", ""), ("D", "9")]
    assert pairs(two, {"Z": "9"}) == [("E", "x y 9")]


@pytest.mark.parametrize(
    ("text", "packages"),
    [
        (
            "apt-get update && apt-get install -y --no-install-recommends python3 git "
            "&& rm -rf /var/lib/apt/lists/*",
            ("python3", "git"),
        ),
        ("apt-get update", ()),
        (
            "set -eux; DEBIAN_FRONTEND=noninteractive apt-get -qq install -y g++; apt-get clean",
            ("g++",),
        ),
        ("apt-get update && curl x | sh", None),
        ("apt-get install -y $(cat list)", None),
        ("apt-get install -y a && useradd b", None),
        ("echo apt", None),
        ("rm -rf /var/lib/apt/lists/* /etc", None),
    ],
)
def test_a_run_of_nothing_but_apt_is_a_requirement(
    text: str, packages: tuple[str, ...] | None
) -> None:
    step = parse_dockerfile(f"FROM a\nRUN {text}\n".encode())[1]
    assert apt_packages(step) == packages


@given(
    st.binary(max_size=300) | st.text(alphabet="FROMRUN a\\\n#<E'\"$", max_size=80).map(str.encode)
)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ImageBuildFailed, Refused):
        assert all(isinstance(words(step), list) for step in parse_dockerfile(data))

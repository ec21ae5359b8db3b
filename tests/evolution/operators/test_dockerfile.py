"""What a Dockerfile brings into the image is found, and edited without touching the rest."""

from __future__ import annotations

import pytest

from evolution.operators import dockerfile

CONTEXT = ("Dockerfile", "a.csv", "data/b.csv", "data/deep/c.csv", "other/d.txt")


def targets(*lines: str) -> dict[str, str]:
    text = "\n".join(("FROM debian:bookworm-slim", *lines)) + "\n"
    return {one.context: one.target for one in dockerfile.copied_files(text, CONTEXT)}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ("COPY data/ /app/data/",),
            {"data/b.csv": "/app/data/b.csv", "data/deep/c.csv": "/app/data/deep/c.csv"},
        ),
        (("WORKDIR /app", "COPY a.csv ."), {"a.csv": "/app/a.csv"}),
        (("COPY a.csv /srv/renamed.csv",), {"a.csv": "/srv/renamed.csv"}),
        (("COPY a.csv other/d.txt /in",), {"a.csv": "/in/a.csv", "other/d.txt": "/in/d.txt"}),
        (('COPY ["a.csv", "/in/"]',), {"a.csv": "/in/a.csv"}),
        (("COPY --chown=1:1 a.csv /in/",), {"a.csv": "/in/a.csv"}),
        (("ADD data/*.csv /in/",), {"data/b.csv": "/in/b.csv"}),
        (("COPY a.csv \\", "  # a remark", "  /in/"), {"a.csv": "/in/a.csv"}),
        (("RUN mkdir -p /in", "COPY a.csv /in"), {"a.csv": "/in/a.csv"}),
        (("RUN apt-get update && mkdir -p /in/x /y", "COPY a.csv /in"), {"a.csv": "/in/a.csv"}),
        (("COPY a.csv /app", "WORKDIR /app"), {"a.csv": "/app/a.csv"}),
        (("COPY a.csv /etc",), {"a.csv": "/etc/a.csv"}),
        (("COPY --from=build a.csv /in/",), {}),
        (("COPY $NAME /in/",), {}),
        (("RUN <<EOF", "COPY a.csv /in/", "EOF"), {}),
    ],
)
def test_copied_files_are_found_at_their_targets(
    lines: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert targets(*lines) == expected


def test_only_the_last_stage_makes_the_image() -> None:
    text = "FROM a AS build\nCOPY a.csv /one/\nFROM b\nCOPY a.csv /two/\n"
    (copied,) = dockerfile.copied_files(text, CONTEXT)
    assert copied.target == "/two/a.csv"


def test_a_folder_that_still_has_files_is_still_copied() -> None:
    text = "FROM x\nCOPY data/ /app/data/\n"
    assert dockerfile.without_file(text, "data/b.csv", ["data/deep/c.csv"]) == text


def test_a_copy_that_would_find_nothing_makes_its_folder_instead() -> None:
    text = "FROM x\n# what to read\nCOPY data/ /app/data/\nUSER root\n"
    changed = dockerfile.without_file(text, "data/b.csv", ["a.csv"])
    assert changed == "FROM x\n# what to read\nRUN mkdir -p /app/data\nUSER root\n"


def test_a_folder_that_was_made_before_stays_one() -> None:
    text = "FROM x\nRUN mkdir -p /app\nCOPY --chown=1:1 a.csv /app\nWORKDIR /app\n"
    changed = dockerfile.without_file(text, "a.csv", ["data/b.csv"])
    assert changed == "FROM x\nRUN mkdir -p /app\nRUN mkdir -p /app\nWORKDIR /app\n"


def test_one_of_several_sources_is_taken_out() -> None:
    text = "FROM x\nCOPY a.csv other/d.txt /in/\n"
    assert (
        dockerfile.without_file(text, "a.csv", ["other/d.txt"]) == "FROM x\nCOPY other/d.txt /in/\n"
    )


def test_a_renaming_copy_leaves_the_folder_of_its_target() -> None:
    changed = dockerfile.without_file("FROM x\nCOPY a.csv /in/b.csv\n", "a.csv", [])
    assert changed == "FROM x\nRUN mkdir -p /in\n"


def test_a_new_folder_is_copied_before_the_start_command() -> None:
    text = 'FROM x\nCOPY data/ /app/\nCMD ["bash"]\n'
    changed = dockerfile.with_copy(text, "feed", "/app/feed")
    assert changed == 'FROM x\nCOPY data/ /app/\nCOPY feed/ /app/feed/\nCMD ["bash"]\n'

"""The tools of the roles that work in a sandbox, as a model sees them."""

from __future__ import annotations

import base64
import binascii
import posixpath
from collections.abc import Callable
from typing import Literal

from pydantic_ai import ModelRetry, Tool

from evolution.agents.workbench import BUNDLE, NAIVE, Bench, DraftError

WRITE_BYTES = 1_000_000
"""The most that one call writes, in bytes."""
MOST_LINES = 400
Which = Literal["reference", "naive", "nothing"]


def tools_of(
    bench: Bench,
    *,
    roots: tuple[str, ...] = (BUNDLE, NAIVE),
    home: str = BUNDLE,
    trial: Callable[[Which], str] | None = None,
) -> tuple[Tool[None], ...]:
    """The tools at a bench; files are written below `roots` only, "" being everywhere.

    Relative paths are below `home`. `trial` tries the draft.
    """

    async def run(command: str, timeout_seconds: int = 60) -> str:
        """Run a shell command (bash) in the sandbox, as root, in its working directory.

        Args:
            command: The command; each call is a new shell, files stay.
            timeout_seconds: After so many seconds everything in the sandbox is ended.
        """
        return bench.run(command, timeout_seconds).text

    async def read_file(path: str, first_line: int = 1, line_count: int = 200) -> str:
        """Read lines of a text file.

        Args:
            path: Absolute path in the sandbox, or one below the working folder.
            first_line: The first line, counted from 1.
            line_count: How many lines, at most 400.
        """
        count = min(max(1, line_count), MOST_LINES)
        return bench.read(placed(path, home), max(1, first_line), count)

    async def write_file(
        path: str,
        content: str,
        is_executable: bool = False,
        encoding: Literal["utf-8", "base64"] = "utf-8",
    ) -> str:
        """Write a file, over what is there.

        Args:
            path: Absolute path, or one below the working folder.
            content: The whole content.
            is_executable: Whether it is a program; what begins with `#!` is one.
            encoding: How the content is given; base64 for bytes that are no text.
        """
        place = placed(path, home)
        if not any(place.startswith(f"{root}/") for root in roots):
            raise ModelRetry(f"{place} is outside of {' and '.join(roots)}: write below them")
        data = decoded(content, encoding)
        return bench.write(place, data, is_executable=is_executable or data.startswith(b"#!"))

    async def list_files(path: str = home) -> str:
        """List the files below a folder with sizes and modes.

        Args:
            path: Absolute path, or one below the working folder.
        """
        return bench.listing(placed(path, home))

    async def try_draft(solution: Which) -> str:
        """Try the draft in `/bundle` in fresh sandboxes, as it will be judged later.

        Args:
            solution: Who works: the reference solution, the naive one, or nobody.
        """
        try:
            return trial(solution) if trial is not None else ""
        except DraftError as error:
            raise ModelRetry(str(error)) from None

    tools: list[Tool[None]] = [
        Tool(run, sequential=True),
        Tool(read_file, sequential=True),
        Tool(write_file, sequential=True),
        Tool(list_files, sequential=True),
    ]
    if trial is not None:
        tools.append(Tool(try_draft, sequential=True))
    return tuple(tools)


def placed(path: str, root: str) -> str:
    """A path as the sandbox knows it: absolute, without detours. Raises ModelRetry."""
    if "\0" in path or not path.strip():
        raise ModelRetry("this is no path")
    return posixpath.normpath(posixpath.join(root, path.strip()))


def decoded(content: str, encoding: str) -> bytes:
    """What is to be written. Raises ModelRetry when it cannot be, or is too much."""
    try:
        data = (
            base64.b64decode(content, validate=True) if encoding == "base64" else content.encode()
        )
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ModelRetry(f"the content cannot be written: {error}") from None
    if len(data) > WRITE_BYTES:
        raise ModelRetry(
            f"{len(data):,} bytes in one call are too much, {WRITE_BYTES:,} are the most:"
            " let a command make large files"
        )
    return data

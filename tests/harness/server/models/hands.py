"""How a model that has nothing but a shell tool reads a bundle, and writes one.

What is known by heart (the files of the seeds, by their content) is not read again. All else comes
through the tool's results, in pieces that are short enough not to be cut.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shlex
import tarfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from evolution.bundle import Bundle
from evolution.composition import composed, composing_refusal
from evolution.reading import FoundBundle, find_bundles
from sandbox.contracts import SandboxFile
from tests.harness.server.wire import Ask, ToolCall

SEEDS = Path(__file__).resolve().parents[4] / "seeds"
COLUMNS, LINES = 700, 8
"""The lines of packed files that are printed at once: few enough for any tool's result."""
NAMES = 60
"""The lines of a list of files that are printed at once."""
SHORT = 16
"""Characters of a content's digest that are enough to know it."""

_LINE = re.compile(r"(?m)^@f ([0-7]+) ([0-9a-f]+) (\d+) (.+)$")
_CUT = re.compile(r"left out to save room|\[… [0-9,]+ characters left out …\]")
_PIECE = re.compile(r"(?m)^@@([A-Za-z0-9+/=]+)$")


@cache
def seeds() -> tuple[Bundle, ...]:
    """The bundled seeds."""
    found = find_bundles(SEEDS)
    return tuple(one.bundle for one in found if isinstance(one, FoundBundle))


@cache
def known_contents() -> Mapping[str, bytes]:
    """The contents of the seeds' files by the beginning of their digests."""
    bundles = (*seeds(), *(composed(one) for one in seeds() if not composing_refusal(one)))
    files = (file for bundle in bundles for file in bundle.files)
    return {hashlib.sha256(file.data).hexdigest()[:SHORT]: file.data for file in files}


def shell(ask: Ask, command: str) -> ToolCall:
    """A call of the tool that runs shell commands."""
    fields = ask.tools["run"].get("properties", {})
    return ToolCall.of("run", **{next(iter(fields)): command})


def list_command(piece: int) -> str:
    """Prints a piece of the list of all files: mode, digest, size, path."""
    each = f'd=$(sha256sum <"$p" | cut -c1-{SHORT}); echo "@f $(stat -c "%a $d %s" "$p") ${{p#./}}"'
    listing = f"find . -type f | LC_ALL=C sort | while IFS= read -r p; do {each}; done"
    return f"cd /bundle && {listing} | {_lines(piece, NAMES)}"


def pack_command(paths: Iterable[str], piece: int) -> str:
    """Prints a piece of these files, packed."""
    names = " ".join(shlex.quote(path) for path in paths)
    packing = f"cat {names} | gzip -9n | base64 -w {COLUMNS}"
    return f"cd /bundle && {packing} | {_lines(piece, LINES)} | sed 's/^/@@/'"


def _lines(piece: int, count: int) -> str:
    return f"sed -n '{piece * count + 1},{(piece + 1) * count}p'"


def write_commands(files: Iterable[SandboxFile], gone: Iterable[str], at: str) -> str:
    """Puts files below a folder, with their modes, and takes others away."""
    lines = []
    packed = _packed(files)
    if packed:
        lines.append(f"mkdir -p {at} && base64 -d <<'END' | tar -xzf - -C {at}\n{packed}END")
    dropped = " ".join(shlex.quote(f"{at}/{path}") for path in gone)
    if dropped:
        lines.append(f"rm -f {dropped}")
    return "\n".join(lines)


def _packed(files: Iterable[SandboxFile]) -> str:
    target = io.BytesIO()
    count = 0
    with tarfile.open(fileobj=target, mode="w") as tar:
        for file in files:
            info = tarfile.TarInfo(file.path)
            info.size, info.mode = len(file.data), file.mode
            tar.addfile(info, io.BytesIO(file.data))
            count += 1
    if not count:
        return ""
    return base64.encodebytes(gzip.compress(target.getvalue(), 9, mtime=0)).decode()


class LeftOut(Exception):
    """What was read is no longer shown: the context is too short for the bundle."""


class Unread(Exception):
    """More has to be read first; `commands` are the next ones."""

    def __init__(self, commands: list[str]) -> None:
        super().__init__("more has to be read")
        self.commands = commands


def read_bundle(ask: Ask) -> Bundle:
    """The bundle in `/bundle` as earlier commands show it. Raises Unread and LeftOut."""
    given = _given(ask)
    listed: list[tuple[str, str, str, str]] = []
    for piece in range(10):
        if list_command(piece) not in given:
            raise Unread([list_command(piece + more) for more in range(2)])
        found = _LINE.findall(given[list_command(piece)])
        listed += found
        if len(found) < NAMES:
            break
    known = known_contents()
    unread = [(path, digest, int(size)) for _, digest, size, path in listed if digest not in known]
    contents = {**known, **_unpacked(given, unread)}
    return Bundle.of(
        SandboxFile(path, contents[digest], 0o755 if int(mode, 8) & 0o100 else 0o644)
        for mode, digest, _, path in listed
    )


def _unpacked(given: Mapping[str, str], unread: list[tuple[str, str, int]]) -> dict[str, bytes]:
    """The contents that had to be read, by digest. Raises Unread."""
    if not unread:
        return {}
    paths = [path for path, _, _ in unread]
    packed = ""
    for piece in range(60):
        if pack_command(paths, piece) not in given:
            raise Unread([pack_command(paths, piece + more) for more in range(4)])
        found = _PIECE.findall(given[pack_command(paths, piece)])
        packed += "".join(found)
        if len(found) < LINES:
            break
    whole = gzip.decompress(base64.b64decode(packed))
    contents, at = {}, 0
    for _, digest, size in unread:
        contents[digest] = whole[at : at + size]
        at += size
    return contents


def _given(ask: Ask) -> dict[str, str]:
    """The results of the commands that were run, by command."""
    found = {}
    for call, result in ask.results:
        try:
            arguments = json.loads(call.arguments)
        except ValueError:
            continue
        for value in arguments.values() if isinstance(arguments, dict) else ():
            if isinstance(value, str):
                if value.startswith("cd /bundle && ") and _CUT.search(result):
                    raise LeftOut
                found[value] = result
    return found

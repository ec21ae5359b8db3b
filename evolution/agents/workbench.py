"""The sandbox at a role's hand: commands, files, trials of a draft; every result is kept.

What a tool gave is kept like a model's answer and given again when a step is repeated, so that the
model is asked the same things. The sandbox is opened when something has to be done that is not on
record; what was done before is done again in it first.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from evolution.agents.trimming import Bounds, quoted
from evolution.bundle import Bundle
from evolution.llm.calls import SANDBOX, CallLog, CallOutcome, CallRecord, Role, Usage
from evolution.llm.canonical import call_key
from evolution.plain_text import plain
from sandbox.base import Sandbox
from sandbox.contracts import ArtifactSpec, ExecResult, SandboxFile
from sandbox.errors import SandboxUnavailable, TooDeep, TooLarge

BUNDLE = "/bundle"
NAIVE = "/naive"
MOST_SECONDS = 300
READ_BACK_BYTES = 128 * 1024 * 1024
"""The most that is read back of a bundle, in bytes."""
CHANGED_BYTES = 8 * 1024 * 1024
"""The most that one draft may change, in bytes."""
CHANGED_FILES = 500
_ENV = (("PYTHONDONTWRITEBYTECODE", "1"), ("LC_ALL", "C.UTF-8"), ("TERM", "dumb"))


class DraftError(Exception):
    """A draft that cannot be taken, in one line for the model."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What a role left: files of the bundle that it changed or removed, and its naive files."""

    changed: tuple[SandboxFile, ...] = ()
    removed: tuple[str, ...] = ()
    naive: tuple[SandboxFile, ...] = ()

    def applied_to(self, bundle: Bundle) -> Bundle:
        """The bundle with these changes."""
        return bundle.with_files(self.changed, self.removed)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run: what the model is shown, and how it ended."""

    text: str
    exit_status: int
    seconds: float
    timed_out: bool


@dataclass
class Bench:
    """One role's sandbox. Use it in one thread; `close` it in the end.

    `start` opens a fresh sandbox with everything in its place. `place` says where in the run it
    stands; `log` keeps results, or is None.
    """

    start: Callable[[], Sandbox]
    role: Role
    place: str
    bounds: Bounds
    log: CallLog | None = None
    user: str | None = "root"
    commands: int = 0
    _sandbox: Sandbox | None = None
    _behind: list[Callable[[Sandbox], object]] = field(default_factory=list)
    _first: dict[str, SandboxFile] | None = None

    def close(self) -> None:
        """End the sandbox, if one was opened."""
        if self._sandbox is not None:
            self._sandbox.stop()
            self._sandbox = None

    # -- what tools do ------------------------------------------------------------------------

    def run(self, command: str, seconds: float, at_most: float = MOST_SECONDS) -> Ran:
        """Run a shell command; what it came to, as a model reads it.

        `at_most` bounds the seconds further, and is no part of what is on record.
        """
        limit = min(max(1.0, seconds), at_most, MOST_SECONDS)

        def act(sandbox: Sandbox) -> str:
            result = sandbox.exec(
                ["bash", "-c", command], timeout_seconds=limit, user=self.user, env=_ENV
            )
            text = shown(result, limit, self.bounds.result)
            return json.dumps([text, result.exit_status, result.seconds, result.timed_out])

        return Ran(*json.loads(self._done("run", [command, seconds], act)))

    def catch_up(self) -> None:
        """Do in the sandbox what is on record: it stands as it did then."""
        self._opened()

    def read(self, path: str, first: int, count: int) -> str:
        """Some lines of a file; line numbers start at 1."""

        def act(sandbox: Sandbox) -> str:
            try:
                files = sandbox.read_files([ArtifactSpec(path)], cap_bytes=READ_BACK_BYTES)
            except TooLarge as error:
                return f"cannot be read: {error}"
            except SandboxUnavailable as error:
                return f"cannot be read: {_still_there(sandbox, error)}"
            file = next((one for one in files if one.path == path), None)
            if file is None:
                return "there is no such file" if not files else "this is a folder: use list_files"
            if file.link is not None:
                return f"a link to {file.link}"
            if b"\0" in file.data[:4096]:
                return f"a binary file of {len(file.data):,} bytes: look at it with run"
            lines = file.data.split(b"\n")
            part = b"\n".join(lines[first - 1 : first - 1 + count])
            head = f"{len(lines):,} lines; from line {first}:"
            return f"{head}\n{quoted(path, part, self.bounds.file)}"

        return self._done("read", [path, first, count], act)

    def write(self, path: str, data: bytes, *, is_executable: bool) -> str:
        """Put a file in its place."""
        file = SandboxFile(path.lstrip("/"), data, 0o755 if is_executable else 0o644)

        def act(sandbox: Sandbox) -> str:
            try:
                sandbox.write_files([file], "/")
            except SandboxUnavailable as error:
                return f"cannot be written: {_still_there(sandbox, error)}"
            return f"{path} has {len(data):,} bytes now"

        return self._done("write", [path, file.digest, file.mode], act)

    def listing(self, path: str) -> str:
        """The files below a folder with their sizes."""

        def act(sandbox: Sandbox) -> str:
            command = 'find "$0" -xdev -not -type d -printf "%s %m %p\\n" | sort -k3 | head -n 400'
            result = sandbox.exec(["bash", "-c", command, path], timeout_seconds=30, user="root")
            said = quoted(f"files below {path}", result.stdout, self.bounds.listing)
            return f"size in bytes, mode, path:\n{said}"

        return self._done("list", [path], act)

    def draft(self) -> Draft:
        """What differs from the bundle as it was laid out. Raises DraftError."""

        def act(sandbox: Sandbox) -> str:
            now = _tree(sandbox, BUNDLE)
            first = self._first or {}
            changed = [file for path, file in now.items() if first.get(path) != file]
            gone = [path for path in first if path not in now]
            naive = list(_tree(sandbox, NAIVE).values())
            _check_size([*changed, *naive])
            return _packed(Draft(tuple(changed), tuple(gone), tuple(naive)))

        self.commands += 1
        return _unpacked(self._done("draft", [], act))

    def trial(self, name: str, run: Callable[[], str]) -> str:
        """Something done beside the sandbox whose result is kept like that of a tool."""
        return self._kept("trial", [name], run)

    # -- remembering --------------------------------------------------------------------------

    def _done(self, name: str, arguments: list[object], act: Callable[[Sandbox], str]) -> str:
        """Give the recorded result of an action in the sandbox, or act and record."""
        return self._kept(name, arguments, lambda: act(self._opened()), again=act)

    def _kept(
        self,
        name: str,
        arguments: list[object],
        make: Callable[[], str],
        *,
        again: Callable[[Sandbox], object] | None = None,
    ) -> str:
        """Give the recorded result, or make and record it.

        `again` is what a sandbox that is opened later is to catch up with.
        """
        self.commands += 1
        place = f"{self.place}/{name}/{self.commands}"
        request = json.dumps({"tool": name, "arguments": arguments}, sort_keys=True).encode()
        key = call_key(place, request)
        known = self.log.recall(key) if self.log is not None else None
        if known is not None:
            if again is not None:
                self._behind.append(again)
            return str(json.loads(known.response))
        result = make()
        if self.log is not None:
            self.log.record(
                CallRecord(
                    key=key,
                    place=place,
                    role=self.role,
                    model=SANDBOX,
                    prompt_digest="",
                    attempt=1,
                    outcome=CallOutcome.ANSWERED,
                    reason="",
                    request=request,
                    response=json.dumps(result).encode(),
                    usage=Usage(),
                    seconds=0.0,
                )
            )
        return result

    def _opened(self) -> Sandbox:
        """The sandbox, with everything done in it that was done before."""
        if self._sandbox is None:
            self._sandbox = self.start()
            self._first = _tree(self._sandbox, BUNDLE)
        behind, self._behind = self._behind, []
        for act in behind:
            act(self._sandbox)
        return self._sandbox


def _still_there(sandbox: Sandbox, error: SandboxUnavailable) -> str:
    """What was wrong with a request of the model's: a full disk, a name that is too long.

    Raises SandboxUnavailable where the sandbox is gone: that is nobody's doing.
    """
    sandbox.exec(["true"], timeout_seconds=30, user="root")
    return plain(str(error))[:300]


def shown(result: ExecResult, seconds: float, most: int) -> str:
    """What a command came to, as a model reads it."""
    head = f"exit status {result.exit_status}"
    if result.timed_out:
        head = f"did not end within {seconds:g} s; every process in the sandbox was ended"
    output = result.stdout
    if result.stderr:
        output += (b"\n" if output and not output.endswith(b"\n") else b"") + result.stderr
    if result.truncated:
        head += "; the output was longer than is kept"
    return f"{head}\n{quoted('output', output, most)}" if output.strip() else f"{head}, no output"


def size_complaint(bundle: Bundle) -> str | None:
    """Why a bundle cannot be worked on, in one line; None when it can."""
    size = sum(len(file.data) for file in bundle.files)
    if size <= READ_BACK_BYTES:
        return None
    return f"its files have {size:,} bytes, {READ_BACK_BYTES:,} are the most to be worked on"


def laid_out(sandbox: Sandbox, bundle: Bundle, naive: Iterable[SandboxFile] = ()) -> Sandbox:
    """The sandbox with a bundle's files where a role works on them; stopped where that fails."""
    links = [
        SandboxFile(name, mode=0o777, link=f"{BUNDLE}/{name}") for name in ("solution", "tests")
    ]
    try:
        sandbox.write_files(bundle.files, BUNDLE)
        sandbox.write_files(tuple(naive), NAIVE)
        for link in links:
            sandbox.remove_tree(f"/{link.path}")
        sandbox.write_files(links, "/")
    except BaseException:
        sandbox.stop()
        raise
    return sandbox


def _tree(sandbox: Sandbox, top: str) -> dict[str, SandboxFile]:
    """The files below a folder, with paths relative to it. Raises DraftError when it is too big."""
    try:
        files = sandbox.read_files([ArtifactSpec(top)], cap_bytes=READ_BACK_BYTES)
    except TooDeep:
        raise DraftError(f"folders below {top} are nested too deeply") from None
    except TooLarge:
        raise DraftError(f"{top} holds more than {READ_BACK_BYTES:,} bytes") from None
    head = f"{top}/"
    return {
        file.path.removeprefix(head): replace(file, path=file.path.removeprefix(head))
        for file in files
        if file.path.startswith(head) and not file.is_folder and not _is_litter(file.path)
    }


def _is_litter(path: str) -> bool:
    return path.endswith(".pyc") or "/__pycache__/" in path


def _check_size(files: list[SandboxFile]) -> None:
    total = sum(len(file.data) for file in files)
    if total > CHANGED_BYTES:
        raise DraftError(f"{total:,} bytes were changed, more than {CHANGED_BYTES:,} in one step")
    if len(files) > CHANGED_FILES:
        raise DraftError(f"{len(files):,} files were changed, more than {CHANGED_FILES} in a step")


def _packed(draft: Draft) -> str:
    def rows(files: Iterable[SandboxFile]) -> list[list[object]]:
        return [[f.path, base64.b64encode(f.data).decode(), f.mode, f.link] for f in files]

    return json.dumps([rows(draft.changed), list(draft.removed), rows(draft.naive)])


def _unpacked(text: str) -> Draft:
    changed, removed, naive = json.loads(text)

    def files(rows: list[list[Any]]) -> tuple[SandboxFile, ...]:
        return tuple(
            SandboxFile(
                str(p), base64.b64decode(str(d)), int(str(m)), None if k is None else str(k)
            )
            for p, d, m, k in rows
        )

    return Draft(files(changed), tuple(map(str, removed)), files(naive))

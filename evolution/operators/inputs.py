"""The input files of an environment: what its solution reads of what its Dockerfile brings in."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from evolution.composition import artifacts_of, covers
from evolution.contracts import Subject
from evolution.operators import dockerfile
from evolution.operators.base import facts
from sandbox.contracts import SandboxFile

DOCKERFILE = "environment/Dockerfile"
_SMALLEST, _LARGEST = 400, 1_000_000
_FEWEST_LINES = 12
_HARMLESS = frozenset({"apt-get", "apt", "mkdir", "rm", "apk", "useradd", "groupadd", "adduser"})
_OWN_PREPARATION = re.compile(r"solution/steps/[0-4]\d-")


@dataclass(frozen=True, slots=True)
class Input:
    """One file that the work reads: where the bundle has it, and where the solver finds it."""

    context: str
    """Path below `environment/`."""
    target: str
    """Absolute path in the image."""
    data: bytes

    @property
    def name(self) -> str:
        """The file's base name."""
        return posixpath.basename(self.target)

    @property
    def is_plain_text(self) -> bool:
        """UTF-8 lines that end with a line feed each, without a mark or carriage returns."""
        try:
            text = self.data.decode()
        except UnicodeDecodeError:
            return False
        odd = any(mark in text for mark in "\r\v\f\x00\x1c\x1d\x1e\x85\ufeff\u2028\u2029")
        return text.endswith("\n") and not odd


def dockerfile_of(subject: Subject) -> str | None:
    """The Dockerfile's text, or None when there is none that can be edited."""
    file = subject.bundle.by_path.get(DOCKERFILE)
    if file is None or file.link is not None:
        return None
    try:
        return file.data.decode()
    except UnicodeDecodeError:
        return None


def environment_refusal(subject: Subject) -> str | None:
    """Why the environment's files cannot be changed, in one line; None when they can."""
    text = dockerfile_of(subject)
    if text is None:
        return "there is no Dockerfile that could be changed"
    if "environment/docker-compose.yaml" in subject.bundle.by_path:
        return "an environment of several containers is not changed"
    reason = writing_refusal(subject)
    if reason:
        return reason
    if not is_built_plainly(text):
        return "its image runs commands that may need the input while it is built"
    return None


def writing_refusal(subject: Subject) -> str | None:
    """Why the solver cannot write where it likes, in one line; None when it can."""
    user = dockerfile.user(dockerfile_of(subject) or "")
    if user not in (None, "root", "0", "root:root", "0:0"):
        return "the solver is not root, and could not write to a further place"
    return None


def is_built_plainly(text: str) -> bool:
    """Whether a Dockerfile runs nothing but installations and the making of folders."""
    for command in dockerfile.runs(text):
        programs = {part.split()[0] for part in re.split(r"&&|;|\|\|", command) if part.split()}
        if not programs <= _HARMLESS:
            return False
    return True


def inputs(subject: Subject) -> tuple[Input, ...]:
    """The files that the solution reads and that no earlier demand has brought in, by path."""
    text = dockerfile_of(subject)
    if text is None:
        return ()
    context = {file.path: file for file in subject.bundle.folder("environment")}
    copied = dockerfile.copied_files(text, context)
    targets = [one.target for one in copied]
    contexts = [one.context for one in copied]
    brought = [source for demand in subject.demands for source in facts(demand, "source")]
    found = []
    for one in sorted(copied, key=lambda copy: copy.target):
        file = context[one.context]
        is_once = targets.count(one.target) == 1 and contexts.count(one.context) == 1
        if file.link is not None or not is_once or covers(brought, one.target):
            continue
        if _is_read(subject, one.target):
            found.append(Input(one.context, one.target, file.data))
    return tuple(found)


def _is_read(subject: Subject, target: str) -> bool:
    """Whether the oracle opened the file; where nobody saw, whether its solution names it."""
    trace = subject.oracle.result.trace if subject.oracle else None
    if trace is not None and not trace.is_blind:
        return target in trace.read
    needle = posixpath.basename(target).encode()
    return any(
        needle in file.data
        for file in subject.bundle.files
        if file.path.startswith("solution/") and not _OWN_PREPARATION.match(file.path)
    )


def hideable(subject: Subject) -> tuple[Input, ...]:
    """The inputs that can be taken away and given back in another form, by path.

    Left out are programs, files too small to matter or too large to carry, files that an image
    command or another file of the environment repeats, and files that the solver must deliver.
    """
    others = [
        file.data
        for file in subject.bundle.folder("environment")
        if file.link is None and file.path != "Dockerfile"
    ]
    delivered = artifacts_of(subject.bundle)
    guarded = [path for demand in subject.demands for path in facts(demand, "guarded")]
    return tuple(
        one
        for one in inputs(subject)
        if _SMALLEST <= len(one.data) <= _LARGEST
        and one.data.count(b"\n") >= _FEWEST_LINES
        and not one.data.startswith(b"#!")
        and not one.name.endswith((".py", ".sh", ".md"))
        and sum(one.data in other for other in others) == 1
        and (not covers(delivered, one.target) or covers(guarded, one.target))
    )


def hiding_refusal(subject: Subject) -> str | None:
    """Why no input can be taken away, in one line; None when one can."""
    reason = environment_refusal(subject)
    if reason:
        return reason
    if not hideable(subject):
        return "no input file is left that its solution reads and that could arrive otherwise"
    return None


def site(subject: Subject, name: str) -> tuple[str, str]:
    """A free place for new files: the folder below `environment/`, and its path in the image."""
    text = dockerfile_of(subject) or ""
    root = dockerfile.workdir(text)
    root = "/srv" if root == "/" else root
    context = [file.path for file in subject.bundle.folder("environment")]
    taken = {one.target for one in dockerfile.copied_files(text, context)}
    taken.update(artifacts_of(subject.bundle))
    trace = subject.oracle.result.trace if subject.oracle else None
    taken.update((*trace.read, *trace.written) if trace else ())
    for number in range(1, 100):
        folder = name if number == 1 else f"{name}-{number}"
        path = f"{root}/{folder}"
        if not any(covers([path], one) for one in taken) and not _has(context, folder):
            return folder, path
    raise ValueError(f"no free place for {name}")


def _has(context: list[str], folder: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for path in context)


def replaced(
    subject: Subject, hidden: Input, folder: str, path: str, files: tuple[SandboxFile, ...]
) -> tuple[list[SandboxFile], list[str]]:
    """Files to put in, and paths to remove, so that `files` (at `path`) stand for the input."""
    context = [f.path for f in subject.bundle.folder("environment") if f.path != hidden.context]
    text = dockerfile.without_file(dockerfile_of(subject) or "", hidden.context, context)
    mode = subject.bundle.by_path[DOCKERFILE].mode
    put = [SandboxFile(DOCKERFILE, dockerfile.with_copy(text, folder, path).encode(), mode)]
    put += [SandboxFile(f"environment/{folder}/{f.path}", f.data, f.mode, f.link) for f in files]
    return put, [f"environment/{hidden.context}"]

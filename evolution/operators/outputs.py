"""What an environment's work leaves behind: the files that its original artifacts hold."""

from __future__ import annotations

from evolution.composition import artifacts_of, covers
from evolution.contracts import Subject
from evolution.operators.base import facts
from evolution.operators.inputs import Input, inputs
from sandbox.contracts import SandboxFile

_LARGEST = 200_000
_MOST = 200
NAMED_INPUTS = 5
"""An instruction that lists more files one by one is tedious, not harder."""


def output_roots(subject: Subject) -> tuple[str, ...]:
    """The artifact paths that the original work has, without those that demands have added."""
    added = {path for demand in subject.demands for path in facts(demand, "artifact")}
    return tuple(path for path in artifacts_of(subject.bundle) if path not in added)


def outputs(subject: Subject) -> tuple[SandboxFile, ...]:
    """The regular files that the reference solution left there, by absolute path."""
    state = subject.oracle.result.state if subject.oracle else None
    roots = output_roots(subject)
    files = (f for f in state or () if f.link is None and not f.is_folder)
    found = (f for f in files if covers(roots, f.path))
    return tuple(sorted(found))


def outputs_refusal(subject: Subject) -> str | None:
    """Why no further work can build on the outputs, in one line; None when it can."""
    found = outputs(subject)
    if not found:
        return "what the reference solution delivers is not known"
    if len(found) > _MOST or sum(len(f.data) for f in found) > _LARGEST:
        return "what the reference solution delivers is too much for a further step"
    return None


def known_inputs(subject: Subject) -> tuple[Input, ...]:
    """The inputs that further work builds on: at most `NAMED_INPUTS`, by path.

    Those that earlier demands restore come first, then the largest.
    """
    state = subject.oracle.result.state if subject.oracle else None
    content = {file.path: file.data for file in state or () if file.link is None}
    restored = [path for demand in subject.demands for path in facts(demand, "input")]
    found = [Input("", path, content[path]) for path in restored if path in content]
    delivered = output_roots(subject)
    others = [one for one in inputs(subject) if not covers(delivered, one.target)]
    found += sorted(others, key=lambda one: (-len(one.data), one.target))
    return tuple(sorted(found[:NAMED_INPUTS], key=lambda one: one.target))

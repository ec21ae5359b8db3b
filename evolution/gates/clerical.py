"""Work for its own sake: a copy of what is there, or words that the instruction says already.

A demand of effect `solution` has to ask for something that is found out, worked out or decided.
One more file that anybody can write down from the instruction, or copy from another, is clerical:
it makes an environment longer to read, not harder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from evolution.contracts import Mutation
from sandbox.contracts import SandboxFile, TrialResult

_WORD = re.compile(rb"\w+")


def clerical_complaint(mutation: Mutation, full: TrialResult, naive: TrialResult) -> str | None:
    """One line when all that the full solution leaves beyond the naive one is clerical.

    None where a state was not kept, where nothing differs, or where anything else does.
    """
    if full.state is None or naive.state is None or not full.is_passed:
        return None
    before = {file.path: file for file in naive.state}
    if before.keys() - {file.path for file in full.state}:
        return None  # what is gone may be the work
    new = [file for file in full.state if before.get(file.path) != file and not file.is_folder]
    if not new or any(file.link is not None for file in new):
        return None
    known = _contents(naive.state) | _contents(mutation.child.folder("environment"))
    said = set(_WORD.findall(mutation.child.displayed_instruction.encode("utf-8", "replace")))
    for file in new:
        is_said = set(_WORD.findall(file.data)) <= said
        if not is_said and file.data.strip() not in known:
            return None
    first = new[0].path
    return (
        f"clerical: {first} is a copy of another file, or holds only words of the instruction,"
        " so nothing has to be worked out for it"
    )


def _contents(files: Iterable[SandboxFile]) -> set[bytes]:
    return {file.data.strip() for file in files if file.link is None}

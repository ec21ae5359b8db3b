"""The sloppy model: its first drafts fail the gates, and it repairs what the evidence names.

Its new steps are left unfinished, which shows at the gate `oracle`; and its naive solution does all
the work, which shows at `demand`.
"""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec

from evolution.bundle import Bundle
from evolution.composition import checks_path
from evolution.contracts import Mutation
from evolution.directions import Effect
from sandbox.contracts import SandboxFile
from tests.harness.server.models import hands
from tests.harness.server.models.competent import Competent, told_of
from tests.harness.server.models.craft import MEMORY, Memory
from tests.harness.server.models.parts import answer
from tests.harness.server.models.ways import Way
from tests.harness.server.wire import Ask, Reply, ToolCall

FLAWS = ("oracle", "demand")
"""The gates that the drafts fail, one after the other; each is one repair. See `Sloppy.flaws`."""
UNFINISHED = "exit 1 # not finished"
_FAILED = re.compile(r"\[data gate ([a-z_]+): failed, blocks #")
_NOTE = SandboxFile("notes.txt", b"The same work, written down once more.\n")


class Sloppy(Competent):
    """Like the competent one, but for the first drafts."""

    def known(self, direction: str) -> tuple[Way, ...]:
        """Ways whose naive solution leaves something out."""
        return tuple(w for w in super().known(direction) if w.effect is not Effect.OBSERVATION)

    def flaws(self, parent: Bundle, way: str) -> tuple[str, ...]:
        """The gates that the drafts of this way fail: no step is unfinished where none is new."""
        made = self.workshop.child(parent, way)
        if isinstance(made, str):
            return ()
        return FLAWS if any(path.endswith(".sh") for path in made.adaptation) else FLAWS[1:]

    def modify(self, ask: Ask) -> Reply:
        """Build badly; with evidence at hand, repair what it shows."""
        failed = frozenset(_FAILED.findall(ask.text))
        return self.repair(ask, failed) if failed else super().modify(ask)

    def edits(self, ask: Ask, parent: Bundle, made: Mutation) -> tuple[ToolCall, ...]:
        """The child with its new steps left unfinished, and a naive solution that is none."""
        new = (file for file in made.child.files if file.path in made.adaptation)
        steps = [replace(f, data=_unfinished(f.data)) for f in new if f.path.endswith(".sh")]
        spoiled = replace(made, child=made.child.with_files(steps))
        good = [one for one in super().edits(ask, parent, spoiled) if "/naive" not in one.arguments]
        return (*good, hands.shell(ask, hands.write_commands([_NOTE], (), "/naive")))

    def hand_over(self, ask: Ask, made: Mutation) -> Reply:
        """Say of the naive solution that it lacks nothing."""
        return answer(ask, **told_of(made.demand))

    def repair(self, ask: Ask, failed: frozenset[str]) -> Reply:
        """Finish the steps if the oracle failed; else say what the naive solution leaves out."""
        try:
            draft = hands.read_bundle(ask)
        except hands.Unread as more:
            return Reply(calls=tuple(hands.shell(ask, one) for one in more.commands))
        demand = msgspec.json.decode(draft.by_path[MEMORY].data, type=Memory).demands[-1]
        omitted = demand.omit if "oracle" not in failed else ()
        command = f"sed -i '/^{UNFINISHED}$/d' /bundle/solution/steps/*.sh"
        if omitted:
            below = [
                replace(edit.file, path=edit.path.removeprefix("solution/"))
                for edit in omitted
                if edit.file is not None
            ]
            told = f"echo '# {demand.id}' >> /bundle/{checks_path(demand.id)}"
            command = f"rm -f /naive/notes.txt; {told}\n"
            command += hands.write_commands(below, (), "/naive")
        if not any(command.split("\n")[0] in result[0].arguments for result in ask.results):
            return Reply(calls=(hands.shell(ask, command),))
        without = [edit.path for edit in omitted if edit.file is None]
        return answer(ask, **told_of(demand), naive_without=without)


def _unfinished(data: bytes) -> bytes:
    head, _, rest = data.partition(b"\n")
    return b"%b\n%b\n%b" % (head, UNFINISHED.encode(), rest)

"""Steps in the world without sandboxes (`toy_world`), built by tools as a model would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic_ai.messages import ModelResponse, ToolCallPart

from evolution import execution
from evolution.agents.means import Means, Turns
from evolution.agents.trimming import Bounds
from evolution.bundle import Bundle
from evolution.contracts import StepConfig
from evolution.directions import Direction
from evolution.llm.calls import Role
from evolution.llm.replay import CallMemory
from sandbox.backends.fake import FakeBackend, FakeSandbox
from sandbox.contracts import Limits, NetworkPolicy
from tests.evolution.agents.orders_step import rulings
from tests.evolution.agents.scripted import ScriptedModels, Speaker, calls, in_turn, says
from tests.evolution.toy_world import FIRST, ToyRunner, solve

CONFIG = StepConfig(
    seed=3,
    directions=(Direction.LENGTH,),
    max_repairs=2,
    oracle_runs=1,
    nop_runs=1,
    mutant_count=12,
)
NEW = "word-99"
PROPOSAL: dict[str, object] = {
    "operator": "one-more-word",
    "aspect": "constraints",
    "effect": "solution",
    "edits": [{"index": 2, "scenario": "a longer list", "skill": "writing on"}],
    "summary": "One more word",
    "why": "a word more to think of",
    "details": "one line more",
}
BUILT: dict[str, object] = {
    "title": "One more word",
    "why": "a word more",
    "requirement": "The last word is word-99.",
    "checks": ["line-20"],
}


@dataclass
class ToyBench:
    """A workbench of sandboxes that only hold files; implements `Workbench`."""

    backend: FakeBackend = field(default_factory=FakeBackend)

    def open(self, bundle: Bundle) -> FakeSandbox:
        """An empty sandbox."""
        image = self.backend.prepare(execution.image_spec(bundle))
        return self.backend.start(image, Limits(), NetworkPolicy())

    @property
    def opened(self) -> int:
        """How many were opened; as many were stopped when all is well."""
        assert self.backend.started == self.backend.stopped
        return self.backend.started


def child_files(*, asks_for_it: bool = True, word: str = NEW) -> tuple[ToolCallPart, ...]:
    """The calls that write the child, and its naive solution."""
    wanted = [*FIRST, word] if asks_for_it else FIRST
    return (
        calls("write_file", path="solution/solve.sh", content=solve([*FIRST, word])),
        calls(
            "write_file",
            path="/bundle/tests/required.txt",
            content="".join(f"{one}\n" for one in wanted),
        ),
        calls("write_file", path="instruction.md", content=f"Write 21 words, {word} last.\n"),
        calls("write_file", path="/naive/solve.sh", content=solve(FIRST), is_executable=True),
    )


def finished(**changes: object) -> ModelResponse:
    """The hand-over of the child."""
    return says(calls("finish", **{**BUILT, **changes}))


def scripts(**others: Speaker) -> Mapping[Role, Speaker]:
    """Scripts of all roles of a step that succeeds; `others` replace some by the role's name."""
    usual: dict[Role, Speaker] = {
        Role.PROPOSER: in_turn(says(calls("finish", **PROPOSAL))),
        Role.PLAN_REVIEWER: in_turn(says(calls("finish", accepted=True))),
        Role.MODIFIER: in_turn(says(*child_files()), finished()),
        Role.JUDGE: in_turn(rulings()),
        Role.EXPLOITER: in_turn(says(calls("finish", script="", how=""))),
    }
    return usual | {Role(name): speaker for name, speaker in others.items()}


def means_of(
    models: ScriptedModels,
    *,
    bench: ToyBench | None = None,
    log: CallMemory | None = None,
    runner: ToyRunner | None = None,
) -> Means:
    """What roles work with in that world."""
    return Means(
        models,
        bench or ToyBench(),
        runner or ToyRunner(),
        log,
        Bounds(),
        Turns(modify=12, exploit=6),
    )

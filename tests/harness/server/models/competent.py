"""The competent model: plans with what it knows, and really edits the bundle through its tools."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from evolution.bundle import Bundle, with_config
from evolution.contracts import Demand, Mutation
from evolution.directions import Effect
from evolution.operators.base import facts
from sandbox.contracts import SandboxFile
from tests.harness.server.models import by_heart, hands
from tests.harness.server.models.craft import Workshop
from tests.harness.server.models.parts import answer, call, data, role_of
from tests.harness.server.models.ways import Way, ways_in
from tests.harness.server.wire import Ask, Reply, ToolCall

PARTS = ("solution/", "environment/", "tests/", "task.toml", "instruction.md")
"""The order in which a bundle is edited."""
SEEN = (
    {"scenario": "files as they were left", "skill": "looking around"},
    {"scenario": "what was found", "skill": "doing the work"},
)
"""A sequence that fits anything."""
_DIRECTION = re.compile(r"in the direction `(scenario|skill|length)`")
_OPERATOR = re.compile(r"(?m)^operator: (?:llm:)?([a-z0-9-]+)$")
_ROW = re.compile(r"(?m)^(\d+)\. scenario: (.*) \| skill: (.*)$")


@dataclass
class Competent:
    """Answers every role as somebody who knows the trade."""

    workshop: Workshop = field(default_factory=Workshop)

    def __call__(self, ask: Ask) -> Reply:
        """The answer to any question of the harness."""
        match role_of(ask):
            case "proposer":
                return self.propose(ask)
            case "plan reviewer":
                return answer(ask, accepted=True)
            case "modifier":
                try:
                    return self.modify(ask)
                except hands.LeftOut:
                    return answer(ask, refusal="I cannot see the whole bundle at once")
            case "exploiter":
                return answer(ask, script="", how="")
            case "extract the sequence":
                return answer(ask, pairs=list(SEEN))
            case "write the reference solution":
                return by_heart.write_solution(ask)
            case "solver":
                return by_heart.solve(ask)
            case "triage":
                return by_heart.diagnose(ask)
        return answer(ask)

    def propose(self, ask: Ask) -> Reply:
        """The first way in this direction that neither the lineage has nor a finding rules out."""
        found = _DIRECTION.search(ask.text)
        if found is None:
            return answer(ask, refusal="no direction is given")
        told = data(ask.text)
        taken = told.get("demands", "") + told.get("findings", "")
        for way in self.known(found[1]):
            if way.name not in taken and way.operator.name not in taken:
                return self.plan(ask, way, told.get("sequence", ""))
        return answer(ask, refusal="every way that I know in this direction is used")

    def known(self, direction: str) -> tuple[Way, ...]:
        """The ways in this direction, the preferred ones first."""
        return ways_in(direction)

    def plan(self, ask: Ask, way: Way, sequence: str) -> Reply:
        """A plan for this way."""
        rows = _ROW.findall(sequence)
        short = min(rows, key=lambda row: len(row[1] + row[2]), default=("0", "a", "b"))
        at, scenario, skill = short
        index = len(rows) if way.direction == "length" else int(at)
        new = way.pair(scenario, skill)
        return answer(
            ask,
            refusal="",
            operator=way.name,
            aspect=way.operator.aspect.value,
            effect=way.effect.value,
            edits=[{"index": index, "scenario": new[0], "skill": new[1]}],
            summary=f"{way.operator.title}.",
            why=f"The work has to reckon with {new[0] if way.direction != 'skill' else new[1]}.",
            details=f"Solution, environment, tests and instruction as for {way.name}.",
        )

    def modify(self, ask: Ask) -> Reply:
        """Read the parent, write the child, hand over."""
        named = _OPERATOR.search(ask.text)
        if named is None:
            return answer(ask, refusal="the plan names no operator")
        written = [one for one, _ in ask.results if "base64 -d" in one.arguments]
        try:
            parent = hands.read_bundle(ask)
        except hands.Unread as more:
            return Reply(calls=tuple(hands.shell(ask, command) for command in more.commands))
        made = self.workshop.child(parent, named[1])
        if isinstance(made, str):
            return answer(ask, refusal=made)
        return self.hand_over(ask, made) if written else Reply(calls=self.edits(ask, parent, made))

    def edits(self, ask: Ask, parent: Bundle, made: Mutation) -> tuple[ToolCall, ...]:
        """The calls that turn the parent into the child, and lay the naive solution down."""
        child = _as_left(parent, made.child)
        changed = [file for file in child.files if parent.by_path.get(file.path) != file]
        gone = [path for path in parent.by_path if path not in child.by_path]
        calls = []
        for part in PARTS:
            files = [file for file in changed if file.path.startswith(part)]
            removed = [path for path in gone if path.startswith(part)]
            if part == "instruction.md" and files and "write_file" in ask.tools:
                calls.append(_written(ask, files[0]))
            elif command := hands.write_commands(files, removed, "/bundle"):
                calls.append(hands.shell(ask, command))
        reference = {file.path: file for file in child.folder("solution")}
        differing = [file for file in naive_files(made) if reference.get(file.path) != file]
        if command := hands.write_commands(differing, (), "/naive"):
            calls.append(hands.shell(ask, command))
        return tuple(calls)

    def hand_over(self, ask: Ask, made: Mutation) -> Reply:
        """What the child is, in the form that is asked for."""
        kept = {file.path for file in naive_files(made)}
        lacking = [f.path for f in made.child.folder("solution") if f.path not in kept]
        without = [f"solution/{path}" for path in lacking]
        hidden = {"discovery": made.discovery, "withheld": list(made.withheld)}
        return answer(ask, **told_of(made.demand), **hidden, naive_without=without)


def told_of(demand: Demand) -> dict[str, Any]:
    """What is handed over beside the files, from the demand that was built."""
    return {
        "refusal": "",
        "title": demand.title,
        "why": demand.why,
        "situation": _line(demand.statement.situation),
        "requirement": _line(demand.statement.requirement),
        "checks": list(demand.checks),
        "premise": list(demand.premise),
        "results": list(facts(demand, "artifact")),
    }


def _line(text: str) -> str:
    return " ".join(text.split())[:600]


def naive_files(made: Mutation) -> tuple[SandboxFile, ...]:
    """The shortest wrong solution, whatever it is wrong in; paths are below `solution/`."""
    return {
        Effect.VERIFIER: made.wrong,
        Effect.OBSERVATION: made.decoy,
    }.get(made.demand.effect) or made.naive


def _as_left(parent: Bundle, child: Bundle) -> Bundle:
    """The child with its origin unsaid: that is not for a model to write."""
    artifacts = child.config.get("artifacts", [])
    if artifacts == parent.config.get("artifacts", []):
        return child.with_files([parent.by_path["task.toml"]])
    plain = with_config(parent, {("artifacts",): artifacts})
    return child.with_files([plain.by_path["task.toml"]])


def _written(ask: Ask, file: SandboxFile) -> ToolCall:
    fields = ask.tools["write_file"].get("properties", {})
    text = next(name for name in ("content", "text", "data") if name in fields)
    return call(ask, "write_file", **{"path": f"/bundle/{file.path}", text: file.data.decode()})

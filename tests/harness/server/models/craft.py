"""What a competent author can do with a bundle: the wrappers of the procedural author.

Everything follows from the files of the parent. What the demands of its lineage were is kept in a
file beside the tests, since a model has no other memory of earlier generations.
"""

from __future__ import annotations

import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from evolution.bundle import Bundle
from evolution.contracts import Demand, Mutation, OracleFacts, StepConfig, Subject
from evolution.engine import observe_oracle
from evolution.memory import MemoryLog
from evolution.operators import registry
from evolution.operators.base import Kind
from evolution.sequence import Pair, assumed_sequence
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import SandboxFile
from sandbox.trial import Runner

MEMORY = "tests/demands/lineage.json"
WRAPPERS = tuple(one for one in registry.OPERATORS if one.kind is Kind.WRAPPER)
_CONFIG = StepConfig(seed=0, oracle_runs=1)


class Memory(msgspec.Struct):
    """What is kept from generation to generation."""

    instruction: str
    demands: list[Demand]


def kebab(operator: str) -> str:
    """An operator's name as a model writes it."""
    return operator.replace("_", "-")


def subject_of(bundle: Bundle, oracle: OracleFacts | None = None) -> Subject:
    """The bundle as an operator sees it, with what is remembered of its lineage."""
    kept = bundle.by_path.get(MEMORY)
    memory = msgspec.json.decode(kept.data, type=Memory) if kept is not None else None
    ratchet = bundle.config.get("metadata", {}).get("ratchet", {})
    pairs = tuple(Pair(p["scenario"], p["skill"]) for p in ratchet.get("sequence", ()))
    return Subject(
        bundle=bundle,
        sequence=pairs or assumed_sequence(bundle.config),
        demands=tuple(memory.demands) if memory is not None else (),
        root_instruction=memory.instruction if memory is not None else bundle.instruction,
        generation=len(memory.demands) if memory is not None else 0,
        oracle=oracle,
    )


@dataclass
class Workshop:
    """Runs reference solutions, once per bundle, and applies operators to what was observed."""

    _facts: dict[str, OracleFacts | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _runner: Runner | None = None

    def child(self, bundle: Bundle, name: str, notch: int = 0) -> Mutation | str:
        """The child that this operator makes of the bundle, or one line that says why not."""
        operator = next((one for one in WRAPPERS if kebab(one.name) == name), None)
        if operator is None:
            return f"I know no way called {name}"
        oracle = self._observed(bundle)
        if oracle is None:
            return "the reference solution does not pass"
        subject = subject_of(bundle, oracle)
        chosen = notch or operator.notches[0]
        try:
            made = operator.apply(subject, chosen, random.Random(f"{bundle.digest}{name}"))
        except ValueError as error:
            return str(error)
        memory = Memory(subject.root_instruction, [*subject.demands, made.demand])
        kept = SandboxFile(MEMORY, msgspec.json.encode(memory))
        return replace(made, child=made.child.with_files([kept]))

    def _observed(self, bundle: Bundle) -> OracleFacts | None:
        with self._lock:
            if bundle.digest not in self._facts:
                runner = self._runner = self._runner or _runner()
                with ThreadPoolExecutor(1) as pool:
                    facts, _ = observe_oracle(
                        subject_of(bundle), runner, MemoryLog(), _CONFIG, pool
                    )
                self._facts[bundle.digest] = facts
            return self._facts[bundle.digest]


def _runner() -> Runner:
    home = Path(tempfile.mkdtemp(prefix="ratchet-workshop-"))
    return Runner(BubblewrapBackend(runtime_dir=home / "run", cache_dir=home / "cache"))

"""Policy-free difficulty: how surprising an environment's situations and skills are to the world.

    D_T = sum over the L pairs of [ -log p(scenario) - log p(skill | scenario) ],  in nats

under a frozen reference (`reference.json`, made once by `reference_corpus` from public data that
holds none of our own environments). No solver and no model takes part.

- **L** is the length of the environment's scenario-skill sequence.
- **Scenario rarity** of a kind of file that work begins from: -log of its share among the kinds
  that 3,566 public terminal environments give.
- **Skill rarity** of a program or Python module: -log of its share. Programs are weighed half by
  12,607 commands that people wrote and half by the environments' own scripts; a program that is
  applied to a known kind of file is weighed by how often it is applied to that kind, drawn towards
  its general share with the weight of 50 commands.
- A traced run has more steps than its sequence has pairs, and most are glue (`mkdir`, `cp`). The L
  rarest distinct ones stand for the pairs; a pair that is left without one counts as the commonest
  there is. So every pair adds something, a rare one adds more, and nothing that is added to a run
  lowers its D_T.
- Every share is mixed with a tenth of a uniform one over 1,000 tokens, so that a token nobody has
  seen costs log(10,000) = 9.2 nats, and nothing costs more.

What it cannot see: how hard something is that common tools do. That is what measuring is for.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files

from evolution.difficulty.extraction import Skill, scenario_kinds, trace_skills
from evolution.sequence import Sequence
from sandbox.contracts import SandboxFile, Trace

REFERENCE_SHA256 = "ccdb199ac273488c667390a317d21b41c08d055dc7e063e9800af0eb7499d225"
"""The digest of the one reference that this version measures by."""
UNIFORM_WEIGHT = 0.1
NOMINAL_TOKENS = 1000
BACK_OFF_COUNT = 50
"""With how many observations the general share of a program speaks beside a kind's own."""
HIGHEST_RARITY = math.log(NOMINAL_TOKENS / UNIFORM_WEIGHT)
"""The rarity of a token that the reference has never seen, in nats."""


class ReferenceChanged(Exception):
    """The reference beside this module is not the one that its figures are defined by."""


@dataclass(frozen=True, slots=True)
class PolicyFree:
    """D_T and its parts, in nats. `total` is length x (scenario_rarity + skill_rarity).

    `scenarios` and `skills` are the tokens that stand for the pairs, rarest first, with their
    rarities, for people to read.
    """

    length: int
    scenario_rarity: float
    skill_rarity: float
    total: float
    scenarios: tuple[tuple[str, float], ...] = ()
    skills: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Reference:
    """The frozen counts, as shares."""

    scenarios: Mapping[str, float]
    modules: Mapping[str, float]
    programs: Mapping[str, float]
    joint: Mapping[tuple[str, str], int]
    kinds: Mapping[str, int]

    @cached_property
    def commonest_scenario(self) -> float:
        """The rarity of the commonest kind, in nats."""
        return _rarity(max(self.scenarios.values()))

    @cached_property
    def commonest_skill(self) -> float:
        """The rarity of the commonest program or module, in nats."""
        return _rarity(max(*self.modules.values(), *self.programs.values()))

    def scenario_rarity(self, kind: str) -> float:
        """-log of a kind's share among the situations, in nats."""
        return _rarity(self.scenarios.get(kind, 0.0))

    def skill_rarity(self, skill: Skill) -> float:
        """-log of a skill's share, given the kind of file that explains it best, in nats."""
        family, _, module = skill.token.partition(":")
        if module and family == "py":
            return _rarity(self.modules.get(module, 0.0))
        general = self.programs.get(skill.token, 0.0)
        given = [
            (self.joint.get((kind, skill.token), 0) + BACK_OFF_COUNT * general)
            / (self.kinds[kind] + BACK_OFF_COUNT)
            for kind in skill.kinds
            if kind in self.kinds
        ]
        return _rarity(max(given, default=general))


def _rarity(share: float) -> float:
    return -math.log((1.0 - UNIFORM_WEIGHT) * share + UNIFORM_WEIGHT / NOMINAL_TOKENS)


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {token: count / total for token, count in counts.items()}


@lru_cache(maxsize=1)
def reference() -> Reference:
    """The frozen reference. Raises ReferenceChanged when its bytes are not the ones measured by."""
    data = files("evolution.difficulty").joinpath("reference.json").read_bytes()
    if hashlib.sha256(data).hexdigest() != REFERENCE_SHA256:
        raise ReferenceChanged("evolution/difficulty/reference.json is not the frozen reference")
    counts = json.loads(data)
    by_people, by_scripts = (
        _shares(counts["program"][corpus]) for corpus in ("commands", "environments")
    )
    joint = {
        (kind, token): count
        for (kind, token), count in (
            (key.split(" ", 1), count) for key, count in counts["joint"].items()
        )
    }
    kinds: Counter[str] = Counter()
    for (kind, _), count in joint.items():
        kinds[kind] += count
    return Reference(
        scenarios=_shares(counts["scenario"]),
        modules=_shares(counts["module"]),
        programs={
            token: (by_people.get(token, 0.0) + by_scripts.get(token, 0.0)) / 2.0
            for token in sorted(by_people.keys() | by_scripts.keys())
        },
        joint=joint,
        kinds=kinds,
    )


def reference_digest() -> str:
    """SHA-256 in hex of the reference, checked against its bytes."""
    reference()
    return REFERENCE_SHA256


def measure(sequence: Sequence, trace: Trace, sources: Iterable[SandboxFile] = ()) -> PolicyFree:
    """D_T of an environment, from its sequence and a traced run of its oracle.

    With `sources`, the files of the solution, Python programs are told apart by what they import;
    without them every Python program is `python3`. Compare only what was measured the same way.
    """
    known = reference()
    length = len(sequence)
    scenarios: dict[str, float] = {}
    for kind in scenario_kinds(trace):
        scenarios[kind] = known.scenario_rarity(kind)
    skills: dict[str, float] = {}
    for skill in trace_skills(trace, sources):
        rarity = known.skill_rarity(skill)
        skills[skill.token] = max(rarity, skills.get(skill.token, 0.0))
    rarest_scenarios, rarest_skills = _rarest(scenarios, length), _rarest(skills, length)
    scenario_rarity = _mean(rarest_scenarios, length, known.commonest_scenario)
    skill_rarity = _mean(rarest_skills, length, known.commonest_skill)
    return PolicyFree(
        length=length,
        scenario_rarity=scenario_rarity,
        skill_rarity=skill_rarity,
        total=round(length * (scenario_rarity + skill_rarity), 9),
        scenarios=rarest_scenarios,
        skills=rarest_skills,
    )


def _rarest(rarities: Mapping[str, float], count: int) -> tuple[tuple[str, float], ...]:
    ranked = sorted(rarities.items(), key=lambda item: (-item[1], item[0]))
    return tuple((token, round(rarity, 9)) for token, rarity in ranked[:count])


def _mean(rarest: tuple[tuple[str, float], ...], length: int, commonest: float) -> float:
    """Rounded, so that the last bit of a logarithm is the same on every machine."""
    missing = length - len(rarest)
    total = math.fsum([*(rarity for _, rarity in rarest), commonest * missing])
    return round(total / length, 9) if length else 0.0

"""Operators that mutate one gene of a family: everything is rendered anew, nothing is patched."""

from __future__ import annotations

import random
from dataclasses import dataclass

from evolution.bundle import Bundle
from evolution.composition import configured, is_composed
from evolution.contracts import Demand, FileEdit, Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.families.base import Family, genes_of
from evolution.operators.base import Kind, Operator, live
from evolution.operators.wrapping import lineage_entries, parent_checks
from evolution.sequence import EditKind, Pair, SequenceEdit, apply_edit


@dataclass(frozen=True)
class Gene:
    """How one gene is told: its cell, its edit of the sequence, and its words.

    `place` is the pair of the family's own sequence that is replaced; an inserted pair goes to the
    end. `phrase` is the new scenario or skill; for an inserted pair, both.
    """

    name: str
    title: str
    direction: Direction
    aspect: Aspect
    effect: Effect
    why: str
    statement: Statement
    phrase: Pair
    place: int = 0
    facts: tuple[tuple[str, str], ...] = ()


class GeneOperator(Operator):
    """Turns one gene of a family from 0 to a notch, while no wrapper has been applied yet."""

    kind = Kind.FAMILY

    def __init__(self, family: Family, gene: Gene) -> None:
        self.family = family
        self.gene = gene
        # An operator's class variables, here set for each gene.
        self.name = f"{family.name}_{gene.name}"  # type: ignore[misc]
        self.title = gene.title  # type: ignore[misc]
        self.direction = gene.direction  # type: ignore[misc]
        self.aspect = gene.aspect  # type: ignore[misc]
        self.effect = gene.effect  # type: ignore[misc]
        self.notches = tuple(range(1, family.genes[gene.name] + 1))  # type: ignore[misc]

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses other environments, changed ones, and those that a wrapper was applied to."""
        genes = genes_of(subject.bundle, self.family)
        if genes is None:
            return f"the environment is not of the family {self.family.name}"
        if live(subject, self.name) or genes[self.gene.name]:
            return f"{self.name} is a demand that is already met"
        if is_composed(subject.bundle):
            names = [
                d.operator for d in subject.demands if not d.operator.startswith(self.family.name)
            ]
            first = names[0] if names else "a wrapper"
            return f"{first} is there already: genes are mutated before any wrapper"
        if _without_configuration(subject.bundle) != _without_configuration(
            self.family.render(genes)
        ):
            return f"its files are not those that {self.family.name} renders"
        return None

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        genes = genes_of(subject.bundle, self.family)
        if reason or genes is None:
            raise ValueError(reason)
        edit = self._edit(subject)
        sequence = apply_edit(subject.sequence, edit)
        child = self.family.render({**genes, self.gene.name: notch})
        child = configured(child, (), lineage_entries(self, subject), sequence)
        full = self.family.module(self.gene.name, is_full=True)
        plain = self.family.module(self.gene.name, is_full=False)
        off = self.family.render(genes)
        solution = [file for file in child.files if file.path.startswith("solution/")]
        demand = Demand(
            id=self.name,
            operator=self.name,
            direction=self.direction,
            aspect=self.aspect,
            effect=self.effect,
            notch=notch,
            title=self.title,
            why=self.gene.why,
            statement=self.gene.statement,
            checks=(self.family.check(self.gene.name),),
            premise=parent_checks(subject),
            omit=(FileEdit(plain.path, plain),),
            facts=(("gene", self.gene.name), *self._facts(child)),
        )
        return Mutation(
            child=child,
            demand=demand,
            edit=edit,
            sequence=sequence,
            adaptation=(full.path,),
            naive=child.with_files([plain]).folder("solution"),
            control=off.with_files(solution),
        )

    def _edit(self, subject: Subject) -> SequenceEdit:
        gene = self.gene
        if gene.direction is Direction.LENGTH:
            return SequenceEdit(EditKind.INSERT, len(subject.sequence), gene.phrase)
        old = subject.sequence[gene.place]
        if gene.direction is Direction.SCENARIO:
            pair = Pair(gene.phrase.scenario, old.skill)
            return SequenceEdit(EditKind.REPLACE_SCENARIO, gene.place, pair)
        pair = Pair(old.scenario, gene.phrase.skill)
        return SequenceEdit(EditKind.REPLACE_SKILL, gene.place, pair)

    def _facts(self, child: Bundle) -> tuple[tuple[str, str], ...]:
        if self.gene.direction is not Direction.LENGTH:
            return (("pair", str(self.gene.place)),)
        if self.effect is not Effect.BUDGET:
            return ()
        limit = child.config["environment"]["memory_mb"] * 1024 * 1024
        return (("budget_kind", "memory_bytes"), ("budget_limit", str(limit)))


def _without_configuration(bundle: Bundle) -> Bundle:
    return bundle.with_files((), ["task.toml"])

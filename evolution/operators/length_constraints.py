"""Length x constraints: further work on the results, which they all have to bear out."""

from __future__ import annotations

import csv
import io
import json
import random

from evolution.composition import step_path
from evolution.contracts import Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators.base import Operator
from evolution.operators.inputs import Input, site, writing_refusal
from evolution.operators.outputs import known_inputs, output_roots, outputs, outputs_refusal
from evolution.operators.wrapping import Draft, build, part, step_pair, wrapping_refusal
from evolution.rendering import listed
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile

_MOST_VALUES = 3_000
_FEWEST_VALUES = 5
_LARGEST_INPUT = 400_000


class EvidenceManifest(Operator):
    """A manifest of all results, and for every value in them the place in the inputs it is from.

    Notch 2: the manifest's lines are chained, each by the digest of all before it.
    """

    name = "evidence_manifest"
    title = "Manifest and provenance of every reported value"
    direction = Direction.LENGTH
    aspect = Aspect.CONSTRAINTS
    effect = Effect.SOLUTION
    notches = (1, 2)
    number = 70

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses subjects whose results, or inputs, are no text or too much of it."""
        reason = (
            wrapping_refusal(self, subject) or outputs_refusal(subject) or writing_refusal(subject)
        )
        if reason:
            return reason
        if not _sources(subject):
            return "no input is plain text, so nothing can be traced back"
        try:
            found = {value for file in outputs(subject) for value in _values(file)}
            count = sum(len(value) >= 4 for value in found)
        except (ValueError, csv.Error):
            return "a result cannot be parsed by what its name says it is"
        if not _FEWEST_VALUES <= count <= _MOST_VALUES:
            return f"its results hold {count} values, too few or too many to be traced back"
        return None

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        if reason:
            raise ValueError(reason)
        _, folder = site(subject, "evidence")
        sources = [one.target for one in _sources(subject)]
        roots = output_roots(subject)
        constants = {
            "FOLDER": folder,
            "OUTPUTS": list(roots),
            "INPUTS": sources,
            "IS_CHAINED": notch >= 2,
        }
        draft = Draft(
            notch=notch,
            edit=SequenceEdit(
                EditKind.INSERT,
                len(subject.sequence),
                Pair("finished results without provenance", "tracing reported values to inputs"),
            ),
            statement=Statement(requirement=_requirement(folder, roots, sources, notch >= 2)),
            why="The results have to be read back and borne out value by value, so any slip in "
            "the first half of the work now breaks a second, dependent half.",
            steps=step_pair(
                step_path(self.number, self.name),
                part(self.name, "step.py", constants),
                "Writes the manifest of the results and traces their values to the inputs.",
            ),
            checks=part(self.name, "checks.py", constants).decode(),
            check_names=("manifest", "provenance"),
            artifacts=(f"{folder}/manifest.tsv", f"{folder}/provenance.tsv"),
            facts=(
                ("artifact", f"{folder}/manifest.tsv"),
                ("artifact", f"{folder}/provenance.tsv"),
            ),
        )
        return build(self, subject, draft)


def _sources(subject: Subject) -> tuple[Input, ...]:
    """The inputs that values can be traced to, by path."""
    return tuple(
        one
        for one in known_inputs(subject)
        if one.is_plain_text and len(one.data) <= _LARGEST_INPUT
    )


def _values(file: SandboxFile) -> list[str]:
    """The values of one result; the step and the checks find them alike."""
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return []
    if file.path.endswith(".json"):
        return list(_leaves(json.loads(text, parse_int=str, parse_float=str)))
    if file.path.endswith((".csv", ".tsv")):
        mark = "\t" if file.path.endswith(".tsv") else ","
        return [cell for row in csv.reader(io.StringIO(text), delimiter=mark) for cell in row]
    return [line.strip() for line in text.split("\n")]


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value] if isinstance(value, str) else []


def _requirement(folder: str, roots: tuple[str, ...], sources: list[str], chained: bool) -> str:
    column = (
        ", and the SHA-256 of all lines before this one, line feeds included" if chained else ""
    )
    order = " in this order" if len(sources) > 1 else ""
    return (
        f"`{folder}/manifest.tsv` has one line for every file of {listed(roots)}, in bytewise "
        "order of their paths, with tabs between the columns: path, size in bytes, SHA-256, "
        f"number of distinct values{column}.\n"
        f"`{folder}/provenance.tsv` has one line for every distinct value of these files "
        "together, in bytewise order: the value, a tab, and `PATH:LINE`, the first line that "
        f"contains it when {listed(sources)} {'are' if order else 'is'} searched{order}, or `-` if "
        "none does.\n"
        "Values, in both, are: of a `.json` file all strings and numbers as they are written "
        "there, but not the keys; of a `.csv` or `.tsv` file all fields, the header's included; "
        "of any other text the whole lines without white space at their ends. Those shorter than "
        "four characters, or with a tab or a line break, do not count; a file that is not UTF-8 "
        "has none."
    )

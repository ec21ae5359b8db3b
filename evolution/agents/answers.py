"""The forms of the roles' answers: what a model may say, bounded and named."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from evolution.directions import Aspect, Effect

Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=600)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=8000)]
Kebab = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+){0,5}$", max_length=40)
]
Path = Annotated[str, StringConstraints(strip_whitespace=True, max_length=400)]


class Answer(BaseModel):
    """What every form shares: fields that nobody asked for are refused."""

    model_config = ConfigDict(extra="forbid")


class PairEdit(Answer):
    """One edit of the sequence: the pair that stands at `index` afterwards."""

    index: int = Field(ge=0, le=100)
    scenario: Name
    skill: Name


class Proposal(Answer):
    """A step that is planned, or a refusal."""

    refusal: Line = ""
    operator: Kebab | Literal[""] = ""
    aspect: Aspect = Aspect.CONSTRAINTS
    effect: Effect = Effect.SOLUTION
    edits: list[PairEdit] = Field(default=[], max_length=12)
    summary: Line = ""
    why: Line = ""
    details: Text = ""


class Review(Answer):
    """What the Plan Reviewer says."""

    accepted: bool
    findings: list[Line] = Field(default=[], max_length=12)


class Built(Answer):
    """What the Modifier hands over beside the files, or a refusal."""

    refusal: Line = ""
    title: Name = ""
    why: Line = ""
    situation: Line = Field(default="", description="what the world looks like now, one sentence")
    requirement: Line = Field(default="", description="the new duty, one sentence")
    checks: list[Name] = Field(
        default=[], max_length=20, description="names of the new checks, as the tests report them"
    )
    premise: list[Name] = Field(default=[], max_length=100)
    naive_without: list[Path] = Field(
        default=[], max_length=50, description="files of the solution that the naive one lacks"
    )
    results: list[Path] = Field(
        default=[], max_length=20, description="absolute paths of results that the new checks read"
    )
    withheld: list[Name] = Field(default=[], max_length=20)
    discovery: Text = Field(default="", description="a shell command that prints what is withheld")


class Exploit(Answer):
    """What the Exploiter found; `script` is empty where it found nothing."""

    script: Annotated[str, StringConstraints(max_length=20_000)] = ""
    how: Line = ""


class ExploitRuling(Answer):
    """Whether a script that earned the reward does the work."""

    does_the_work: bool
    quote: Line
    reason: Line


class Ruling(Answer):
    """One rubric's answer."""

    rubric: Name
    passed: bool
    quote: Line
    reason: Line


class Rulings(Answer):
    """The answers to all rubrics."""

    rulings: list[Ruling] = Field(max_length=30)


class Diagnosis(Answer):
    """What an environment is that nobody passed."""

    kind: Literal["unsolved", "broken_oracle", "infrastructure", "exploit_only", "unclear"]
    quote: Line
    reason: Line


class PairAnswer(Answer):
    """One pair of an extracted sequence."""

    scenario: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=160)]
    skill: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=160)]


class Extraction(Answer):
    """The sequence of an environment that states none."""

    pairs: list[PairAnswer] = Field(min_length=2, max_length=8)


class Written(Answer):
    """That a reference solution was written, or why none can be."""

    refusal: Line = ""
    summary: Line = ""

"""Small real rows for the tests of services: bundles, lineages, children, people."""

from __future__ import annotations

from evolution.bundle import Bundle
from evolution.contracts import Demand, Mutation, Plan, Statement
from evolution.directions import Aspect, Direction, Effect, Effort
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile
from webapp.lifecycle import VerificationStatus
from webapp.models import Environment, EvolutionRun, EvolutionStep, Role, User
from webapp.services import environments

TOML = """schema_version = "1.4"
artifacts = ["/app/out"]
[task]
name = "tests/{name}"
keywords = ["text"]
[metadata]
license = "CC0-1.0"
[metadata.ratchet]
host_root = true
sequence = [{{scenario = "a file", skill = "counting"}}]
[verifier]
environment_mode = "separate"
[environment]
network_mode = "no-network"
"""


def make_bundle(name: str = "count-lines", text: str = "Count the lines.") -> Bundle:
    """A small bundle; another text gives another digest."""
    return Bundle.of(
        [
            SandboxFile("task.toml", TOML.format(name=name).encode()),
            SandboxFile("instruction.md", text.encode()),
            SandboxFile("environment/Dockerfile", b"FROM debian:bookworm-slim\nWORKDIR /app\n"),
            SandboxFile("solution/solve.sh", b"echo 3 > /app/out\n", 0o755),
            SandboxFile("tests/test.sh", b"echo 1 > /logs/verifier/reward.txt\n", 0o755),
        ]
    )


def make_user(name: str, role: Role = Role.REVIEWER) -> User:
    """An account of that role."""
    return User.objects.create_user(name, password="a long password", role=role)


def make_seed(name: str = "count-lines", *, is_valid: bool = True) -> Environment:
    """A seed environment, stored by the import."""
    environment, _ = environments.import_seed(
        make_bundle(name), name=f"tests/{name}", origin="tests"
    )
    if is_valid:
        Environment.objects.filter(pk=environment.pk).update(verification=VerificationStatus.VALID)
        environment.refresh_from_db()
    return environment


def make_run(*seeds: Environment, generations: int = 2, children: int = 1) -> EvolutionRun:
    """A stored run that nobody has started."""
    run = EvolutionRun.objects.create(
        name="a run", status="running", generations=generations, children=children
    )
    run.lineages.set([seed.lineage for seed in seeds])
    return run


def make_step(run: EvolutionRun, parent: Environment, ordinal: int = 0) -> EvolutionStep:
    """A queued step under a parent."""
    return EvolutionStep.objects.create(
        run=run,
        lineage=parent.lineage,
        parent=parent,
        generation=parent.generation + 1,
        ordinal=ordinal,
        seed=7,
    )


def make_mutation(parent: Environment, text: str = "Count twice.") -> tuple[Plan, Mutation]:
    """A plan and the child that it makes, as an author would hand them over."""
    subject = environments.load_subject(parent)
    child = subject.bundle.with_files([SandboxFile("instruction.md", text.encode())])
    edit = SequenceEdit(EditKind.INSERT, 1, Pair("a second file", "counting again"))
    sequence = (*subject.sequence, edit.pair)
    demand = Demand(
        id=f"twice-{parent.generation + 1}",
        operator="twice",
        direction=Direction.LENGTH,
        aspect=Aspect.CONSTRAINTS,
        effect=Effect.SOLUTION,
        notch=1,
        title="The lines are counted twice",
        why="A second count depends on the first.",
        statement=Statement(requirement="Count twice."),
        checks=("twice.counted",),
    )
    plan = Plan(
        operator="twice",
        direction=Direction.LENGTH,
        aspect=Aspect.CONSTRAINTS,
        effort=Effort.LOW,
        notch=1,
        sequence=sequence,
        edit=edit,
        summary="count twice",
        why=demand.why,
        seed=7,
    )
    mutation = Mutation(
        child=child,
        demand=demand,
        edit=edit,
        sequence=sequence,
        adaptation=("solution/solve.sh",),
        naive=subject.bundle.folder("solution"),
        control=subject.bundle,
    )
    return plan, mutation


def make_child(
    parent: Environment, text: str = "Count twice.", *, is_valid: bool = True
) -> Environment:
    """A child of a parent, stored as a step would store it."""
    run = make_run(parent)
    step = make_step(run, parent)
    plan, mutation = make_mutation(parent, text)
    child, _ = environments.add_candidate(step, plan, mutation, 0)
    if is_valid:
        Environment.objects.filter(pk=child.pk).update(
            verification=VerificationStatus.VALID, demands_bite=1
        )
        child.refresh_from_db()
    return child

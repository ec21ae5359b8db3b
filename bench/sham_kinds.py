"""Sham operators: steps that claim to make an environment harder and do not, one kind each.

A sham is made as well as a dishonest author could make it: its own solution passes, doing nothing
fails, its sequence is edited as its direction demands. Only the claim is empty. Kinds that need a
real step to spoil take one from the operators. Every kind is a function of a world and a number.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from bench.sham_worlds import (
    CHECKS,
    SOLVE,
    TEST,
    NotHere,
    Sham,
    World,
    checked,
    claim,
    edit_for,
    pick,
    real_step,
    script,
    told,
)
from evolution.contracts import Mutation
from evolution.directions import Direction, Effect
from evolution.operators.base import Kind
from evolution.operators.registry import operator
from evolution.sequence import EditKind, Pair, apply_edit
from sandbox.contracts import SandboxFile

# -- kinds that are made from nothing ------------------------------------------------------------


def rename_only(world: World, number: int) -> Mutation:
    """An output has another name; all that the parent did is right once it is renamed."""
    old = pick(world.outputs, number).path
    folder, base = old.rsplit("/", 1)
    new_base = ("final-", "v2-", "out_", "checked-")[number % 4] + base
    new = f"{folder}/{new_base}"
    text = world.told.replace(base, new_base)
    bring = f'if [ -f "{new}" ]; then cp -p "{new}" "{old}"; '
    parent = world.bundle
    new_check = f'def check_new_name():\n    open("{new}", "rb").close()\n'
    child = parent.with_files(
        [
            SandboxFile("instruction.md", text.encode()),
            script(parent, SOLVE, last=f'mv "{old}" "{new}"\n'),
            script(parent, TEST, first=f'{bring}else rm -f "{old}"; fi\n'),
            checked(world, new_check),
        ]
    )
    control = child.with_files([script(parent, TEST, first=f"{bring}fi\n"), parent.by_path[CHECKS]])
    naive = child.with_files([parent.by_path[SOLVE]])
    return claim(
        world,
        "rename_only",
        child,
        naive=naive,
        control=control,
        checks=("new_name",),
        premise=world.checks,
    )


PROSE = (
    "This is a critical system: be extremely careful, thorough and precise.",
    "Senior staff will review every detail, so the work must be of the highest standard.",
    "Think about all edge cases, however unlikely, before you answer.",
    "The deadline is strict and mistakes are expensive; make no mistake.",
    "The result must be robust, elegant, maintainable and correct under all circumstances.",
)


def prose_only(world: World, number: int) -> Mutation:
    """The instruction sounds harder. Every second one promises a check that is not there."""
    child = world.bundle.with_files([told(world, pick(PROSE, number))])
    checks = ("care_is_taken",) if number % 2 else world.checks[:1]
    return claim(world, "prose_only", child, naive=child, control=child, checks=checks)


def demand_already_met(world: World, number: int) -> Mutation:
    """A new check that the parent's work meets; the adaptation rewrites what is there."""
    file = pick(world.outputs, number)
    content = f'open("{file.path}", "rb").read()'
    kinds = (
        ("is whole", f"len({content}) >= {len(file.data) // 2}"),
        ("has no NUL", f"b'\\0' not in {content}"),
        ("ends its last line", f"{content}[-1:] == {file.data[-1:]!r}"),
        ("is not too long", f"len({content}.splitlines()) < {10 * file.data.count(10) + 50}"),
    )
    what, claimed = kinds[number % len(kinds)]
    rewrite = f'cp "{file.path}" /tmp/copy && cat /tmp/copy > "{file.path}"\n'
    parent = world.bundle
    child = parent.with_files(
        [
            told(world, f"`{file.path}` {what}."),
            script(parent, SOLVE, last=rewrite),
            checked(world, f"def check_already_met():\n    assert {claimed}\n"),
        ]
    )
    return claim(
        world,
        "demand_already_met",
        child,
        naive=child.with_files([parent.by_path[SOLVE]]),
        control=child.with_files([parent.by_path[CHECKS]]),
        checks=("already_met",),
    )


def limit_above_naive(world: World, number: int) -> Mutation:
    """A size limit that any way of writing keeps."""
    file = pick(world.outputs, number)
    limit = len(file.data) * (2 + number % 4) + 100
    size = f'__import__("os").path.getsize("{file.path}")'
    parent = world.bundle
    child = parent.with_files(
        [
            told(world, f"`{file.path}` has at most {limit} bytes."),
            script(parent, SOLVE, last="# written as tersely as can be\n"),
            checked(world, f"def check_is_small():\n    assert {size} <= {limit}\n"),
        ]
    )
    return claim(
        world,
        "limit_above_naive",
        child,
        naive=child.with_files([parent.by_path[SOLVE]]),
        control=child.with_files([parent.by_path[CHECKS]]),
        checks=("is_small",),
        effect=Effect.BUDGET,
        facts=(
            ("budget_kind", "bytes"),
            ("budget_limit", str(limit)),
            ("budget_path", file.path),
        ),
    )


def missing_file(world: World, number: int) -> Mutation:
    """An input is gone, and only the reference solution knows what was in it."""
    parent = world.bundle
    file, path = pick(world.inputs, number)
    code = base64.encodebytes(file.data).decode()
    plain = file.data.decode("utf-8", "replace")
    is_plain = number % 2 == 0 and plain.encode() == file.data and plain.endswith("\n")
    how, text = ("cat", plain) if is_plain else ("base64 -d", code)
    restore = f'mkdir -p "{path.rsplit("/", 1)[0]}"\n'
    restore += f'{how} > "{path}" <<\'RESTORED\'\n{text}RESTORED\nchmod {file.mode:o} "{path}"\n'
    folder = file.path.rpartition("/")[0]
    is_alone = not any(p != file.path and p.startswith(f"{folder}/") for p in parent.by_path)
    output = world.outputs[0].path
    check = f'def check_was_restored():\n    open("{output}", "rb").close()\n'
    child = parent.with_files(
        [
            *([SandboxFile(f"{folder}/.keep", b"kept\n")] if is_alone else []),
            told(world, f"`{path}` was lost and has to be had again."),
            script(parent, SOLVE, first=restore),
            checked(world, check),
        ],
        [file.path],
    )
    return claim(
        world,
        "missing_file",
        child,
        naive=child.with_files([parent.by_path[SOLVE]]),
        control=child.with_files([file]),
        checks=("was_restored",),
        premise=world.checks,
        direction=Direction.SCENARIO,
    )


def clerical(world: World, number: int) -> Mutation:
    """One more thing for its own sake: a constant, or a copy of what is there."""
    parent, file = world.bundle, pick(world.outputs, number)
    extra = f"/app/out/{('receipt', 'status', 'copy', 'owner')[number % 4]}.txt"
    kinds: tuple[tuple[str, str, str], ...] = (
        ("holds the word `complete`", "echo complete", "b'complete'"),
        ("holds the name of the team, `operations`", "echo operations", "b'operations'"),
        (
            f"is a copy of `{file.path}`",
            f'cat "{file.path}"',
            f'open("{file.path}", "rb").read().strip()',
        ),
        ("holds the version of the format, `format=2`", "echo format=2", "b'format=2'"),
    )
    what, command, wanted = kinds[number % len(kinds)]
    check = f'def check_extra():\n    assert open("{extra}", "rb").read().strip() == {wanted}\n'
    child = parent.with_files(
        [
            told(world, f"`{extra}` {what}."),
            script(parent, SOLVE, last=f'{command} > "{extra}"\n'),
            checked(world, check),
        ]
    )
    return claim(
        world,
        "clerical",
        child,
        naive=child.with_files([parent.by_path[SOLVE]]),
        control=child.with_files([parent.by_path[CHECKS]]),
        checks=("extra",),
        direction=Direction.LENGTH if number % 2 else Direction.SKILL,
    )


# -- kinds that spoil a real step ----------------------------------------------------------------

_PROVABLE = frozenset({Effect.SOLUTION, Effect.BUDGET})


def hint_in_instruction(world: World, number: int) -> Mutation:
    """A real step whose instruction gives its solution away."""
    real = real_step(world, number, frozenset({Effect.SOLUTION}))
    texts = [real.child.text(path) for path in real.adaptation if path in real.child.by_path]
    hint = "\n".join(f"```\n{text.rstrip()}\n```" for text in texts)
    instruction = f"{real.child.instruction.rstrip()}\n\nThis does it:\n\n{hint}\n"
    child = real.child.with_files([SandboxFile("instruction.md", instruction.encode())])
    return replace(real, child=child)


def empty_test(world: World, number: int) -> Mutation:
    """A real step whose new checks hold for anything."""
    real = real_step(world, number, _PROVABLE)
    names = [name.split(".", 1)[1] for name in real.demand.checks]
    path = f"tests/demands/{real.demand.id}.py"
    if path not in real.child.by_path:
        raise NotHere(f"there is no {path}")
    text = "\n\n".join(f"def check_{name}():\n    assert True" for name in names)
    return replace(real, child=real.child.with_files([SandboxFile(path, f"{text}\n".encode())]))


def idle_adaptation(world: World, number: int) -> Mutation:
    """A real step whose naive solution is its full one: what was adapted makes no difference."""
    real = real_step(world, number, _PROVABLE)
    demand = replace(real.demand, omit=())
    return replace(real, naive=real.child.folder("solution"), demand=demand)


def broken_naive(world: World, number: int) -> Mutation:
    """A step that asks for nothing, with a naive solution that fails for a reason of its own."""
    met = demand_already_met(world, number)
    spoil = ("exit 1\n", "if then fi (\n", "set -e; false\n", "rm -rf /app/out; exit 0\n")
    broken = script(world.bundle, SOLVE, first=spoil[number % len(spoil)])
    demand = replace(met.demand, id="broken_naive", operator="broken_naive", premise=world.checks)
    naive = world.bundle.with_files([broken]).folder("solution")
    return replace(met, naive=naive, demand=demand)


def wrong_direction(world: World, number: int) -> Mutation:
    """A real step under the name of another direction, its sequence edited to fit the name.

    Not where the name can be defended: steps of a family render everything anew, a budget is
    weighed by a step of its own, and a skill that the world asks for could be told as a scenario.
    """
    real = real_step(world, number)
    if operator(real.demand.operator).kind is Kind.FAMILY:
        raise NotHere("a family's step changes all parts at once")
    others = set(Direction) - {real.demand.direction}
    if real.demand.direction is Direction.SKILL:
        if real.child.folder("environment") != world.bundle.folder("environment"):
            others.discard(Direction.SCENARIO)
        if real.demand.effect is Effect.BUDGET:
            others.discard(Direction.LENGTH)
    if not others:
        raise NotHere("both other names can be defended")
    said = random.Random(f"{world.name} {number}").choice(sorted(others))
    edit = edit_for(world, said, real.demand.operator)
    return replace(
        real,
        demand=replace(real.demand, direction=said),
        edit=edit,
        sequence=apply_edit(world.subject.sequence, edit),
    )


def old_words(world: World, number: int) -> Mutation:
    """A real step whose new pair is an old one, only written otherwise."""
    real = real_step(world, number)
    old = world.subject.sequence[real.edit.index % len(world.subject.sequence)]
    again = Pair(f"{old.scenario.upper()}.", f"{old.skill.title()}!")
    if real.edit.kind is EditKind.REPLACE_SCENARIO:
        again = replace(again, skill=old.skill)
    elif real.edit.kind is EditKind.REPLACE_SKILL:
        again = replace(again, scenario=old.scenario)
    edit = replace(real.edit, index=real.edit.index % len(world.subject.sequence), pair=again)
    return replace(real, edit=edit, sequence=apply_edit(world.subject.sequence, edit))


KINDS: Mapping[str, Sham] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            *(rename_only, prose_only, demand_already_met, limit_above_naive, missing_file),
            *(clerical, hint_in_instruction, empty_test, idle_adaptation, broken_naive),
            *(wrong_direction, old_words),
        )
    }
)
"""All kinds by name."""


def honest(world: World, number: int) -> Mutation:
    """No sham: the control. What an operator really makes has to be accepted."""
    return real_step(world, number)

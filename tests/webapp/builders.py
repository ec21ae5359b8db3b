"""Stored data for the tests of the pages: lineages of real bundles, verdicts, runs, people."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Sequence
from datetime import timedelta

import msgspec
from django.utils import timezone

from evolution.bundle import Bundle
from evolution.sequence import Pair
from sandbox.contracts import SandboxFile
from tests.webapp.verdicts import add_scores, add_verification
from webapp.lifecycle import ReviewStatus, RunStatus, VerificationStatus
from webapp.models import (
    Environment,
    EnvironmentKind,
    Event,
    EvolutionRun,
    EvolutionStep,
    Lineage,
    Role,
    User,
)
from webapp.store import load_bundle, save_bundle

PASSWORD = "a ratchet turns one way"
OPERATORS: tuple[tuple[str, str, str, str, str, str], ...] = (
    (
        *("foreign_encoding", "scenario", "constraints", "solution"),
        "The log arrives as UTF-16 from another system",
        "The reader must notice the encoding before any line can be matched.",
    ),
    (
        *("damaged_mirrors", "scenario", "resources", "solution"),
        "The input exists only as chunks in two damaged mirrors",
        "Neither mirror is whole; the file has to be rebuilt from checksums first.",
    ),
    (
        *("stale_copies", "scenario", "dynamics", "observation"),
        "Three copies of the input, and only one is current",
        "The newest file is incomplete; receipts and content together tell which one counts.",
    ),
    (
        *("collateral_guard", "skill", "constraints", "verifier"),
        "Nothing outside the output folder may change",
        "A quick fix that normalises the input in place is noticed now.",
    ),
    (
        *("size_budget", "skill", "resources", "budget"),
        "The hand-over archive must stay below 24 kB",
        "Packing everything exceeds the ceiling; only what is needed may go in.",
    ),
    (
        *("flaky_source", "skill", "dynamics", "solution"),
        "The input is served in pages by a client that fails now and then",
        "Reading once is not enough: exit status 75 asks for a retry, and pages may repeat.",
    ),
    (
        *("evidence_manifest", "length", "constraints", "solution"),
        "A signed manifest over the results is asked for",
        "The outputs have to be parsed again and cross-checked before they can be listed.",
    ),
    (
        *("staged_budget", "length", "resources", "budget"),
        "Only four submissions to the checker are counted",
        "Guessing no longer works; the result must be right before it is handed in.",
    ),
    (
        *("sealed_followup", "length", "dynamics", "solution"),
        "A sealed second order opens with the first result",
        "The second piece of work cannot be seen, let alone done, before the first is right.",
    ),
)
SEEDS = (
    ("nginx-log-forensics", "rotated access logs", "find the sources of an attack"),
    ("broken-backup-script", "a backup script that loses files", "debug shell scripts"),
    ("archive-carving", "a damaged multi-member archive", "recover intact members"),
    ("dns-zone-consolidation", "several zone files with duplicates", "merge by precedence"),
    ("ledger-reconciliation", "two ledgers that disagree", "match rows by tolerance"),
)
_counter = itertools.count(1)


def make_user(role: Role, username: str = "", *, has_password: bool = False) -> User:
    """A person, who can sign in with PASSWORD if asked for (hashing it takes a while)."""
    name = username or f"{role.label.lower()}{next(_counter)}"
    user = User(username=name, role=role)
    if has_password:
        user.set_password(PASSWORD)
    else:
        user.set_unusable_password()
    user.save()
    return user


def seed_bundle(index: int = 0, extra: str = "") -> Bundle:
    """A small Harbor bundle; another index or extra makes other digests."""
    slug, situation, work = SEEDS[index % len(SEEDS)]
    instruction = (
        f"# {slug.replace('-', ' ').capitalize()}\n\n"
        f"In `/app/data` you find {situation}. Your job: {work}.\n\n"
        "Write the result to `/app/out/report.csv` with the columns `source`, `first_seen`,\n"
        "`count`, sorted by `count` from high to low, ties by `source`.\n\n"
        "- Times are UTC, in the form `2024-05-01T12:00:00Z`.\n"
        f"- Lines that cannot be parsed are counted in `/app/out/skipped.txt`.\n{extra}"
    )
    solve = "#!/bin/bash\nset -euo pipefail\nmkdir -p /app/out\npython3 /solution/report.py\n"
    report = (
        "import csv, re, sys\n\nPATTERN = re.compile(r'(\\S+) - \\[(.+?)\\]')\n\n\n"
        "def rows(lines):\n    for line in lines:\n        found = PATTERN.match(line)\n"
        "        if found:\n            yield found.groups()\n\n\n"
        "with open('/app/data/access.log') as log:\n    found = list(rows(log))\n"
        "csv.writer(open('/app/out/report.csv', 'w')).writerows(found)\n"
    )
    checks = "def check_report():\n    assert open('/app/out/report.csv').read().strip()\n"
    log = "".join(f"10.0.{i % 7}.{i % 31} - [01/May/2024:12:{i % 60:02d}:00]\n" for i in range(80))
    toml = (
        'schema_version = "1.4"\nartifacts = ["/app/out"]\n\n[task]\n'
        f'name = "ratchet/{slug}"\n\n[metadata]\nlicense = "Apache-2.0"\n'
    )
    return Bundle.of(
        [
            SandboxFile("instruction.md", instruction.encode()),
            SandboxFile("task.toml", toml.encode()),
            SandboxFile("environment/Dockerfile", b"FROM debian:bookworm-slim\nWORKDIR /app\n"),
            SandboxFile("environment/data/access.log", f"{log}# {index}\n".encode()),
            SandboxFile("environment/data/sample.bin", bytes(range(256))),
            SandboxFile("solution/solve.sh", solve.encode(), 0o755),
            SandboxFile("solution/report.py", report.encode()),
            SandboxFile("tests/test.sh", b"#!/bin/bash\nexec python3 -I -B /tests/run.py\n", 0o755),
            SandboxFile("tests/checks.py", checks.encode()),
        ]
    )


def make_seed(index: int = 0, *, extra: str = "", name: str = "") -> Environment:
    """A verified seed with its lineage."""
    bundle = seed_bundle(index, extra)
    slug, situation, work = SEEDS[index % len(SEEDS)]
    name = name or f"ratchet/{slug}"
    lineage = Lineage.objects.create(
        name=name,
        licence="Apache-2.0",
        origin="bundled with Ratchet",
        tags=["logs", "python"],
        seed_digest=bundle.digest,
        node_count=1,
    )
    sequence = [Pair(situation, "read the layout"), Pair("noise between the lines", work)]
    return Environment.objects.create(
        lineage=lineage,
        generation=0,
        path="000",
        kind=EnvironmentKind.IMPORTED,
        name=name,
        title=name,
        digest=bundle.digest,
        harbor_digest=bundle.harbor_digest,
        manifest=save_bundle(bundle),
        instruction=bundle.instruction,
        root_instruction=bundle.instruction,
        sequence=msgspec.to_builtins(sequence),
        verification=VerificationStatus.VALID,
        d_t=9.5 + index % 3,
    )


def child_bundle(parent: Environment, operator: str, title: str, salt: str) -> Bundle:
    """The parent's bundle with one demand more: instruction, data, solution and tests change."""
    base = load_bundle(parent)
    step = f"{parent.generation + 1:02d}-{operator}"
    instruction = parent.instruction + f"- {title}.\n"
    script = f"#!/bin/bash\n# {title} {salt}\nset -euo pipefail\niconv -f UTF-16 a > b\n"
    return base.with_files(
        [
            SandboxFile("instruction.md", instruction.encode()),
            SandboxFile(f"solution/steps/{step}.sh", script.encode(), 0o755),
            SandboxFile(
                f"tests/demands/{operator}.py",
                f"def check_{operator}():\n    assert True, {title!r}\n".encode(),
            ),
            SandboxFile(
                "tests/checks.py",
                base.by_path["tests/checks.py"].data
                + f"\n\ndef check_{operator}_rows():\n    assert rows('{step}')\n".encode(),
            ),
        ]
    )


def make_child(
    parent: Environment,
    operator: int = 0,
    *,
    run: EvolutionRun | None = None,
    verification: str = VerificationStatus.VALID,
    salt: str = "",
    title: str = "",
    why: str = "",
) -> Environment:
    """A child of this parent by the numbered operator, without its verification's rows."""
    name, direction, aspect, effect, shown, reason = OPERATORS[operator % len(OPERATORS)]
    title, why = title or shown, why or reason
    salt = salt or str(next(_counter))
    bundle = child_bundle(parent, name, title, salt)
    siblings = Environment.objects.filter(parent=parent).count()
    sequence = [dict(pair) for pair in parent.sequence]
    if direction == "length":
        sequence.append({"scenario": "the result of the first part", "skill": f"{name} {salt}"})
    elif sequence:
        key = "scenario" if direction == "scenario" else "skill"
        sequence[-1] = sequence[-1] | {key: f"{shown.lower()}"}
    demand = {
        "id": f"{name}-{parent.generation + 1}",
        "operator": name,
        "direction": direction,
        "aspect": aspect,
        "effect": effect,
        "notch": 1 + operator % 3,
        "title": title,
        "why": why,
        "statement": {"situation": "", "requirement": ""},
        "checks": [f"{name}.content", f"{name}.order"],
    }
    demands = [*parent.demands, demand]
    is_valid = verification == VerificationStatus.VALID
    child = Environment.objects.create(
        lineage=parent.lineage,
        parent=parent,
        generation=parent.generation + 1,
        path=f"{parent.path}.{_base36(siblings)}",
        kind=EnvironmentKind.EVOLVED,
        name=parent.name,
        title=title,
        why=why,
        digest=bundle.digest,
        harbor_digest=bundle.harbor_digest,
        manifest=save_bundle(bundle),
        instruction=bundle.instruction,
        root_instruction=parent.root_instruction,
        sequence=sequence,
        demands=demands,
        demands_live=len(demands),
        demands_bite=len(demands) if is_valid else None,
        direction=direction,
        aspect=aspect,
        effect=effect,
        effort="low",
        operator=name,
        notch=1 + operator % 3,
        verification=verification,
        run=run,
        failure="" if is_valid else "mutants: 14 of 20 mutants are killed, 19 are needed",
        d_t=(parent.d_t or 9.0) + 1.1 + 0.3 * (operator % 4) if is_valid else None,
        change_rates={
            "parent": {"instruction": 0.21, "environment": 0.33, "verification": 0.5, "mean": 0.35},
            "root": {"instruction": 0.44, "environment": 0.5, "verification": 0.66, "mean": 0.53},
        },
    )
    Lineage.objects.filter(pk=parent.lineage_id).update(
        node_count=parent.lineage.environments.count(), max_generation=child.generation
    )
    Event.objects.create(
        kind="environment.built", text=f"{title} ({name})", environment=child, run=run
    )
    return child


def _base36(number: int) -> str:
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    first, rest = divmod(number, 1296)
    return digits[first] + digits[rest // 36] + digits[rest % 36]


def make_run(
    lineages: Sequence[Lineage], user: User | None = None, **fields: object
) -> EvolutionRun:
    """A running run over these lineages, begun four minutes ago."""
    values: dict[str, object] = {
        "name": f"{len(lineages)} lineages, 3 generations, seed 7",
        "status": RunStatus.RUNNING,
        "seed": 7,
        "generations": 3,
        "children": 2,
        "created_by": user,
        "started_at": timezone.now() - timedelta(minutes=4),
    }
    run = EvolutionRun.objects.create(**values | fields)
    run.lineages.set(lineages)
    Event.objects.create(kind="run.created", text=run.name, run=run, actor=user)
    return run


def add_step(
    run: EvolutionRun, parent: Environment, ordinal: int, **fields: object
) -> EvolutionStep:
    """A completed step of a run."""
    values: dict[str, object] = {
        "generation": parent.generation + 1,
        "ordinal": ordinal,
        "seed": ordinal,
        "status": RunStatus.COMPLETED,
        "end": "accepted",
        "seconds": 5.1,
        "refusals": [],
    }
    return EvolutionStep.objects.create(
        run=run, lineage=parent.lineage, parent=parent, **values | fields
    )


def make_demo(operator: User) -> EvolutionRun:
    """Five lineages of three generations with verdicts, decisions and a run under way."""
    chance = random.Random(7)
    seeds = [make_seed(index) for index in range(len(SEEDS))]
    run = make_run([seed.lineage for seed in seeds], operator)
    for seed in seeds:
        add_verification(seed)
        add_scores(seed)
        level = [seed]
        for _ in range(3):
            level = _grow(run, level, chance)
    return run


def _grow(run: EvolutionRun, level: list[Environment], chance: random.Random) -> list[Environment]:
    following: list[Environment] = []
    for parent in level:
        for _ in range(2):
            is_valid = chance.random() < 0.8
            status = VerificationStatus.VALID if is_valid else VerificationStatus.INVALID
            operator = chance.randrange(len(OPERATORS))
            child = make_child(parent, operator, run=run, verification=status)
            add_verification(child)
            if is_valid:
                add_scores(child)
                following.append(child)
    for ordinal, parent in enumerate(level):
        add_step(run, parent, ordinal)
    return following[:4]


def grow_wide(seed: Environment, count: int) -> None:
    """Many descendants quickly: rows that share the seed's manifest under digests of their own."""
    chance = random.Random(count)
    nodes: list[Environment] = [seed]
    ordinals = {seed.pk: Environment.objects.filter(parent=seed).count()}
    while count > 0:
        batch: list[Environment] = []
        parents = [n for n in nodes if n.generation < 14]
        for _ in range(min(count, max(8, len(parents) // 2))):
            parent = chance.choice(parents[-400:])
            ordinal = ordinals.get(parent.pk, 0)
            ordinals[parent.pk] = ordinal + 1
            batch.append(light_child(parent, ordinal, chance))
        nodes.extend(Environment.objects.bulk_create(batch))
        count -= len(batch)
    deepest = max(node.generation for node in nodes)
    Lineage.objects.filter(pk=seed.lineage_id).update(node_count=len(nodes), max_generation=deepest)


def light_child(
    parent: Environment, ordinal: int, chance: random.Random | None = None
) -> Environment:
    """A child, not stored yet, that shares its parent's files under a digest of its own."""
    chance = chance or random.Random(ordinal)
    name, direction, aspect, effect, title, why = chance.choice(OPERATORS)
    is_valid = chance.random() < 0.78
    decided = chance.choice([ReviewStatus.APPROVED, ReviewStatus.UNREVIEWED, ReviewStatus.REJECTED])
    path = f"{parent.path}.{_base36(ordinal)}"
    return Environment(
        lineage_id=parent.lineage_id,
        parent=parent,
        generation=parent.generation + 1,
        path=path,
        kind=EnvironmentKind.EVOLVED,
        name=parent.name,
        title=title,
        why=why,
        digest=hashlib.sha256(f"{parent.lineage_id}{path}".encode()).hexdigest(),
        harbor_digest="0" * 64,
        manifest=parent.manifest,
        instruction=parent.instruction,
        root_instruction=parent.root_instruction,
        sequence=parent.sequence,
        demands=[],
        demands_live=parent.generation + 1,
        demands_bite=parent.generation + 1 if is_valid else None,
        direction=direction,
        aspect=aspect,
        effect=effect,
        effort="low",
        operator=name,
        notch=1,
        verification=VerificationStatus.VALID if is_valid else VerificationStatus.INVALID,
        review=decided if is_valid else ReviewStatus.UNREVIEWED,
        failure="" if is_valid else "demand: naive on the child passes, so nothing was added",
        d_t=(parent.d_t or 9.0) + chance.uniform(0.2, 1.6) if is_valid else None,
    )

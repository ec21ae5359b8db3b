"""From genes to a whole environment: data, reference solution, tests and instruction together."""

from __future__ import annotations

import bz2
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files as resources
from typing import Any

from evolution.bundle import Bundle
from evolution.families.log_forensics import world as worlds
from evolution.families.log_forensics.truth import truth
from evolution.rendering import wrapped
from sandbox.contracts import SandboxFile

SLUG = "auth-log-forensics"
GENES: Mapping[str, int] = {"clocks": 2, "noise": 2, "leases": 1, "volume": 1}
"""The genes with their highest notch."""
SEED = 20241026
MODULES: Mapping[str, str] = {
    "clocks": "clocks.py",
    "noise": "messages.py",
    "leases": "leases.py",
    "volume": "reading.py",
}
"""The module of the solution that meets the demand of each gene."""
MEMORY_MB = {0: 512, 1: 48}
"""Of the whole sandbox, by the notch of `volume`."""
_CHECKS_OF = {"clocks": "timeline", "noise": "rejected", "leases": "devices", "volume": "hourly"}


def part(name: str) -> bytes:
    """One of the family's scripts or texts."""
    return resources("evolution.families.log_forensics.parts").joinpath(name).read_bytes()


def check_of(gene: str) -> str:
    """The check that a gene brings."""
    return _CHECKS_OF[gene]


def module(gene: str, is_full: bool) -> SandboxFile:
    """A gene's module: the one that meets its demand, or the plain one."""
    name = MODULES[gene]
    folder = "full" if is_full else "plain"
    return SandboxFile(f"solution/{name}", part(f"{folder}_{name}"))


def render(genes: Mapping[str, int]) -> Bundle:
    """The environment of these genes. Raises ValueError for a notch that there is not."""
    if any(not 0 <= genes[gene] <= highest for gene, highest in GENES.items()):
        raise ValueError(f"no such genes: {dict(genes)}")
    return _rendered(tuple(genes[gene] for gene in GENES))


@lru_cache(maxsize=8)
def _rendered(notches: tuple[int, ...]) -> Bundle:
    genes = dict(zip(GENES, notches, strict=True))
    world = worlds.make(genes, SEED)
    files = [
        SandboxFile("task.toml", _task(genes).encode()),
        SandboxFile("instruction.md", instruction(genes).encode()),
        SandboxFile("environment/Dockerfile", part("Dockerfile.txt")),
        SandboxFile("environment/data/policy.ini", part("policy.ini")),
        *_data(world, genes),
        SandboxFile("solution/solve.sh", part("solve.sh"), 0o755),
        SandboxFile("solution/report.py", part("report.py.txt")),
        *(module(gene, genes[gene] > 0) for gene in GENES),
        SandboxFile("tests/test.sh", part("test.sh"), 0o755),
        SandboxFile("tests/run_checks.py", part("run_checks.py.txt")),
        SandboxFile("tests/checks.py", part("checks.py")),
        SandboxFile("tests/expected.json", _json(truth(world, genes))),
    ]
    return Bundle.of(files)


def _data(world: worlds.World, genes: Mapping[str, int]) -> list[SandboxFile]:
    found = []
    for host, text in worlds.logs(world).items():
        if genes["volume"]:
            # bzip2, since its output is the same wherever it runs.
            packed = bz2.compress(text.encode(), 1)
            found.append(SandboxFile(f"environment/data/auth/{host}.log.bz2", packed))
        else:
            found.append(SandboxFile(f"environment/data/auth/{host}.log", text.encode()))
    if genes["clocks"]:
        rows = [
            f"{host},{worlds.stamp(begin)},{minutes}\n"
            for host, offsets in world.offsets.items()
            for begin, minutes in offsets
        ]
        data = "host,from_utc,minutes_ahead\n" + "".join(rows)
        found.append(SandboxFile("environment/data/clocks.csv", data.encode()))
    if genes["leases"]:
        rows = [
            f"{address},{device},{owner},{worlds.stamp(begin)},{worlds.stamp(end)}\n"
            for address, device, owner, begin, end in world.leases
        ]
        data = "address,device,owner,from_utc,until_utc\n" + "".join(sorted(rows))
        found.append(SandboxFile("environment/data/leases.csv", data.encode()))
    return found


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()


def _task(genes: Mapping[str, int]) -> str:
    text = part("task.toml").decode()
    text = text.replace("MEMORY", str(MEMORY_MB[genes["volume"]]))
    named = ", ".join(f"{gene} = {genes[gene]}" for gene in GENES)
    return text.replace("GENES", f"{{ {named} }}")


def instruction(genes: Mapping[str, int]) -> str:
    """What the solver is told, for these genes."""
    texts = json.loads(part("instruction.json"))
    memory = str(MEMORY_MB[genes["volume"]])
    logs = texts["logs packed" if genes["volume"] else "logs plain"]
    paragraphs = [
        [texts["goal"]],
        [logs, texts["clocks"][genes["clocks"]], texts["order"], texts["noise"][genes["noise"]]],
        [texts["rules"], texts["leases"] if genes["leases"] else ""],
        [texts["volume"].replace("MEMORY", memory) if genes["volume"] else ""],
        ["Write to `/app/out`:"],
    ]
    prose = [wrapped(" ".join(filter(None, sentences))) for sentences in paragraphs]
    asked = [texts["report"], *(texts[f"{gene} file"] for gene in GENES if genes[gene])]
    prose.append("\n".join(wrapped(item, "- ") for item in asked))
    return "\n\n".join(filter(None, prose)) + "\n"

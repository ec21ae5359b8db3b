"""Which question a gate's answer answers, so that none is asked twice.

An answer that was given once may be repeated where everything that decides it is as it was: the
bundle, the gate's own version and that of the protocol, the parameters that this gate looks at, and
the images that the trials run in, with the back-end that made them, and the toolchain where it runs
tests. What can be judged without a trial is judged anew; what was inconclusive, or failed by a
time-out, is asked again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import fields

from evolution import execution
from evolution.bundle import Bundle, BundleError
from evolution.contracts import Mutation
from evolution.gates.case import Case
from evolution.gates.versions import PROTOCOL_VERSION, version_of
from sandbox.contracts import Image, SandboxFile, tree_digest
from sandbox.toolchain.making import digest as toolchain_digest

Part = Callable[[Case], object]
"""A piece of a case that decides an answer; its `repr` is the same wherever it is made."""


def _runs(case: Case) -> object:
    return case.oracle_runs


def _depth(case: Case) -> object:
    return case.depth.value


def _nop_runs(case: Case) -> object:
    return case.nop_runs


def _demands(case: Case) -> object:
    return case.subject.demands


def _parent(case: Case) -> object:
    return None if case.parent is None else (case.parent.bundle.digest, case.parent.sequence)


def _mutation(case: Case) -> object:
    return None if case.mutation is None else _parts_of(case.mutation)


def _mutants(case: Case) -> object:
    return case.config.mutant_count, case.config.seed


def _parts_of(mutation: Mutation) -> object:
    """All that a mutation says; bundles and folders by digest."""
    return tuple(_told(getattr(mutation, one.name)) for one in fields(mutation))


def _told(value: object) -> object:
    if isinstance(value, Bundle):
        return value.digest
    if isinstance(value, tuple) and value and all(isinstance(v, SandboxFile) for v in value):
        return tree_digest(value)
    return value


_PARTS: dict[str, tuple[Part, ...]] = {
    "oracle": (_runs, _depth),
    "nop": (_nop_runs,),
    "demand": (_mutation, _parent, _runs),
    "sequence": (_mutation, _parent),
    "contract": (),
    "headroom": (_runs,),
    "demands": (_demands,),
    "parent_solution": (_mutation, _parent),
    "mutants": (_mutation, _parent, _mutants),
    "image_leak": (),
    "hermetic": (),
    "alternatives": (),
    "exploits": (),
}
"""The gates that run trials, and what each looks at beside the bundle and its images."""


def question(gate: str, case: Case, images: Iterable[Image]) -> str:
    """SHA-256 in hex of all that decides this gate's answer; empty where it is always asked."""
    if gate not in _PARTS:
        return ""
    parts = [
        f"{gate} {version_of(gate)} of protocol {PROTOCOL_VERSION}",
        case.bundle.digest,
        *(f"{image.backend} {image.digest} {image.ref}" for image in images),
        *(repr(part(case)) for part in _PARTS[gate]),
        *_toolchain(case),
    ]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _toolchain(case: Case) -> tuple[str, ...]:
    """What runs the tests of the bundle, or of its parent, where that is the toolchain."""
    bundles = [case.bundle, *([case.parent.bundle] if case.parent else [])]
    return (toolchain_digest(),) if any(map(_needs_toolchain, bundles)) else ()


def _needs_toolchain(bundle: Bundle) -> bool:
    try:
        found = execution.preamble(bundle)
    except BundleError:  # no trial is made of it
        return False
    return found is not None and found.use is not None

"""The versions of the protocol and of its gates: raised when answers change, by hand."""

from __future__ import annotations

PROTOCOL_VERSION = 3
"""Raised when all answers may change: how trials are made from a bundle, run, and read."""

_FIRST = 2
_VERSIONS = {
    "alternatives": 3,
    "contract": 4,
    "demand": 3,
    "exploits": 7,
    "hermetic": 7,
    "mutants": 6,
    "novel": 3,
    "oracle": 3,
    "parent_solution": 3,
    "sequence": 4,
}
"""Raised when this gate's answers change; those that are not named speak in their first one."""


def version_of(gate: str) -> int:
    """The version in which a gate speaks now; an answer in another one is stale."""
    return _VERSIONS.get(gate, _FIRST)

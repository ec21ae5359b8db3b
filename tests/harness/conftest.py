"""What tests of the harness share."""

from __future__ import annotations

from tests.evolution.real_sandbox import runner

__all__ = ["runner"]

"""Real sandboxes, once for all tests of this folder."""

from tests.evolution.real_sandbox import runner

__all__ = ["runner"]

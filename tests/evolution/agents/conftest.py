"""Sandboxes for roles: a workbench over the back-end that also runs the trials."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from evolution import execution
from evolution.bundle import Bundle
from evolution.ports import Workbench
from sandbox.base import Sandbox
from sandbox.contracts import NetworkPolicy
from sandbox.trial import Runner
from tests.evolution.real_sandbox import runner

__all__ = ["runner"]


@dataclass
class RunnersBench:
    """Opens sandboxes on the back-end of a runner; counts them."""

    runner: Runner
    opened: int = 0

    def open(self, bundle: Bundle) -> Sandbox:
        """See `Workbench.open`."""
        self.opened += 1
        backend = self.runner.backend
        image = backend.prepare(execution.image_spec(bundle))
        return backend.start(image, execution.limits(bundle), NetworkPolicy())


@pytest.fixture
def workbench(runner: Runner) -> Workbench:
    """A workbench of real sandboxes."""
    return RunnersBench(runner)

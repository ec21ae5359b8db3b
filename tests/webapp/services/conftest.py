"""What tests of services share."""

from __future__ import annotations

import pytest

from tests.evolution.toy_world import ToyRunner, toy_bundle
from webapp.adapters import work
from webapp.models import Environment
from webapp.services import environments, verifications


@pytest.fixture
def toy_seed(db: None) -> Environment:
    """A seed of the toy world, verified there."""
    made, _ = environments.import_seed(toy_bundle(), name="toy", origin="tests")
    verification = verifications.open_verification(made)
    assert work.work_on_verification(verification.pk, lambda _: ToyRunner(), "tests")
    made.refresh_from_db()
    return made

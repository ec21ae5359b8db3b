"""Stored data and signed-in clients for the tests of the pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from django.test import Client

from tests.webapp import builders
from webapp.lifecycle import VerificationStatus
from webapp.models import Environment, EvolutionRun, Role, Trial, User

HTMX = {"HX-Request": "true"}


@dataclass(frozen=True)
class World:
    """A seed with a valid child, a valid grandchild and an invalid child, made by one run."""

    operator: User
    run: EvolutionRun
    seed: Environment
    child: Environment
    grandchild: Environment
    invalid: Environment

    @property
    def trial(self) -> Trial:
        """A trial of the child."""
        return Trial.objects.filter(verification__environment=self.child).order_by("pk")[0]


@pytest.fixture
def world(db: None) -> World:
    operator = builders.make_user(Role.OPERATOR, "olga")
    seed = builders.make_seed(0)
    run = builders.make_run([seed.lineage], operator)
    child = builders.make_child(seed, 0, run=run)
    grandchild = builders.make_child(child, 8, run=run)
    invalid = builders.make_child(seed, 4, run=run, verification=VerificationStatus.INVALID)
    for environment in (seed, child, grandchild, invalid):
        builders.add_verification(environment)
        builders.add_scores(environment)
    builders.add_step(run, seed, 0)
    return World(operator, run, seed, child, grandchild, invalid)


@pytest.fixture
def as_role(db: None) -> Callable[[Role], Client]:
    """A client that is signed in as a new person of a role."""

    def sign_in(role: Role) -> Client:
        client = Client()
        client.force_login(builders.make_user(role))
        return client

    return sign_in


@pytest.fixture
def reviewer(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.REVIEWER)


@pytest.fixture
def viewer(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.VIEWER)

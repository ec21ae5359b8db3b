"""Every address, and who may use it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.views.conftest import World
from webapp.http import PUBLIC
from webapp.models import Role
from webapp.urls import urlpatterns

# name: (method, least role; 0 means everybody)
TABLE: dict[str, tuple[str, int]] = {
    "healthz": ("get", PUBLIC),
    "login": ("get", PUBLIC),
    "theme": ("post", PUBLIC),
    "sign_out": ("post", Role.VIEWER),
    "dashboard": ("get", Role.VIEWER),
    "environments": ("get", Role.VIEWER),
    "environment": ("get", Role.VIEWER),
    "environment_files": ("get", Role.VIEWER),
    "file_download": ("get", Role.VIEWER),
    "environment_diff": ("get", Role.VIEWER),
    "environment_gates": ("get", Role.VIEWER),
    "gates_json": ("get", Role.VIEWER),
    "environment_verify": ("post", Role.OPERATOR),
    "environment_errands": ("get", Role.VIEWER),
    "environment_errand": ("post", Role.OPERATOR),
    "environment_making": ("get", Role.VIEWER),
    "making_export": ("get", Role.VIEWER),
    "environment_trials": ("get", Role.VIEWER),
    "environment_lineage": ("get", Role.VIEWER),
    "environment_reviews": ("get", Role.VIEWER),
    "environment_history": ("get", Role.VIEWER),
    "bundle_download": ("get", Role.VIEWER),
    "trial": ("get", Role.VIEWER),
    "measured": ("get", Role.VIEWER),
    "measured_cast": ("get", Role.VIEWER),
    "call": ("get", Role.VIEWER),
    "imports": ("get", Role.VIEWER),
    "import_report": ("get", Role.VIEWER),
    "lineages": ("get", Role.VIEWER),
    "lineage": ("get", Role.VIEWER),
    "lineage_at": ("get", Role.VIEWER),
    "lineage_panel": ("get", Role.VIEWER),
    "lineage_children": ("get", Role.VIEWER),
    "review_queue": ("get", Role.REVIEWER),
    "review_next": ("post", Role.REVIEWER),
    "review_focus": ("get", Role.REVIEWER),
    "review_decide": ("post", Role.REVIEWER),
    "review_claim": ("post", Role.REVIEWER),
    "review_release": ("post", Role.REVIEWER),
    "review_skip": ("post", Role.REVIEWER),
    "review_undo": ("post", Role.REVIEWER),
    "runs": ("get", Role.VIEWER),
    "run_new": ("get", Role.OPERATOR),
    "run": ("get", Role.VIEWER),
    "run_live": ("get", Role.VIEWER),
    "run_events": ("get", Role.VIEWER),
    "run_calls": ("get", Role.VIEWER),
    "run_calls_export": ("get", Role.VIEWER),
    "run_change": ("post", Role.OPERATOR),
    "datasets": ("get", Role.VIEWER),
    "dataset_freeze": ("get", Role.CURATOR),
    "dataset": ("get", Role.VIEWER),
    "dataset_version": ("get", Role.VIEWER),
    "dataset_download": ("get", Role.CURATOR),
    "models": ("get", Role.OPERATOR),
    "audit": ("get", Role.OPERATOR),
}
LINEAGE_PAGES = {"lineage", "lineage_at"}
RUN_PAGES = {"run", "run_live", "run_events", "run_calls", "run_calls_export"}


def address(name: str, world: World) -> str:
    """An address of this name that leads somewhere, or nowhere in a harmless way."""
    if name == "run_change":
        return reverse(name, args=[world.run.pk, "pause"])
    if name == "dataset":
        return reverse(name, args=["nothing"])
    if name in ("dataset_version", "dataset_download"):
        return reverse(name, args=["nothing", 1])
    if name == "lineage_at":
        return reverse(name, args=[world.seed.lineage_id]) + "?generation=1&rank=1"
    if name in LINEAGE_PAGES:
        return reverse(name, args=[world.seed.lineage_id])
    if name in RUN_PAGES:
        return reverse(name, args=[world.run.pk])
    if name == "trial":
        return reverse(name, args=[world.trial.pk])
    if name == "review_undo":
        return reverse(name, args=[10**9])
    if name == "environment_errand":
        return reverse(name, args=[world.child.pk, "triage"])
    pattern = next(p for p in urlpatterns if p.name == name)
    if pattern.pattern.converters:
        return reverse(name, args=[world.child.pk])
    return reverse(name)


def test_every_address_is_in_the_table_with_the_role_that_its_view_asks_for() -> None:
    asked = {
        pattern.name: getattr(pattern.callback, "required_role", None) for pattern in urlpatterns
    }
    assert asked == {name: role for name, (_, role) in TABLE.items()}


def test_a_stranger_is_sent_to_the_sign_in_page(world: World, client: Client) -> None:
    for name, (method, role) in TABLE.items():
        response = getattr(client, method)(address(name, world))
        leads_to_sign_in = response.status_code == 302 and response.url.startswith("/signin/")
        assert leads_to_sign_in == (role != PUBLIC), name


@pytest.mark.parametrize("role", list(Role))
def test_a_role_reaches_exactly_its_pages(
    role: Role, world: World, as_role: Callable[[Role], Client]
) -> None:
    client = as_role(role)
    for name, (method, least) in TABLE.items():
        response = getattr(client, method)(address(name, world))
        assert response.status_code < 500, name
        is_reached = response.status_code != 403
        assert is_reached == (role >= least), (name, response.status_code)
        if name == "sign_out":
            client = as_role(role)


def test_changes_are_never_made_by_a_get(world: World, as_role: Callable[[Role], Client]) -> None:
    admin = as_role(Role.ADMIN)
    for name, (method, _) in TABLE.items():
        if method == "post" and name != "review_next":
            assert admin.get(address(name, world)).status_code == 405, name
    assert admin.get("/review/next").url == "/review/"


def test_a_switched_off_account_reaches_nothing(world: World) -> None:
    client = Client()
    client.force_login(world.operator)
    world.operator.is_active = False
    world.operator.save()
    assert client.get("/").status_code == 302


def test_an_htmx_request_of_a_stranger_is_sent_to_the_sign_in_page_as_a_whole(
    db: None, client: Client
) -> None:
    response = client.get("/environments/", headers={"HX-Request": "true"})
    assert response.headers["HX-Redirect"].startswith("/signin/")

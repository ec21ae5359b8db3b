"""Signing in and out, the throttle, the theme, the probe, the error pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache
from django.test import Client

from tests.webapp import builders
from webapp.forms.signin import MAX_FAILURES
from webapp.models import Role


@pytest.fixture(autouse=True)
def _fresh_counters() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def sign_in(client: Client, password: str, **more: str) -> int:
    data = {"username": "ana", "password": password, **more}
    return client.post("/signin/", data).status_code


def test_the_right_password_leads_to_where_the_person_wanted_to_go(
    db: None, client: Client
) -> None:
    builders.make_user(Role.VIEWER, "ana", has_password=True)
    data = {"username": "ana", "password": builders.PASSWORD, "next": "/runs/"}
    assert client.post("/signin/", data).url == "/runs/"
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "javascript:1"])
def test_signing_in_never_leads_to_another_site(db: None, client: Client, target: str) -> None:
    builders.make_user(Role.VIEWER, "ana", has_password=True)
    data = {"username": "ana", "password": builders.PASSWORD, "next": target}
    assert client.post("/signin/", data).url == "/"


def test_after_eight_failures_even_the_right_password_waits(db: None, client: Client) -> None:
    builders.make_user(Role.VIEWER, "ana", has_password=True)
    assert [sign_in(client, "wrong") for _ in range(MAX_FAILURES - 1)] == [200] * 7
    assert sign_in(client, "wrong") == 429
    assert sign_in(client, builders.PASSWORD) == 429
    assert client.get("/").status_code == 302


def test_a_success_forgets_the_failures(db: None, client: Client) -> None:
    builders.make_user(Role.VIEWER, "ana", has_password=True)
    for _ in range(MAX_FAILURES - 1):
        sign_in(client, "wrong")
    assert sign_in(client, builders.PASSWORD) == 302
    client.post("/signout/")
    assert sign_in(client, "wrong") == 200


def test_signing_out_ends_the_session(viewer: Client) -> None:
    assert viewer.post("/signout/").url == "/signin/"
    assert viewer.get("/").status_code == 302


def test_the_theme_is_kept_in_a_cookie_and_shown(viewer: Client) -> None:
    viewer.post("/theme/", {"theme": "dark", "next": "/"})
    assert 'data-theme="dark"' in viewer.get("/").text
    viewer.post("/theme/", {"theme": '"><script>', "next": "/"})
    assert 'data-theme="dark"' in viewer.get("/").text


def test_the_probe_answers_without_a_session(db: None, client: Client) -> None:
    assert client.get("/healthz").text == "ok\n"


def test_pages_carry_a_policy_that_runs_no_inline_code(viewer: Client) -> None:
    policy = viewer.get("/").headers["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_a_form_without_its_token_is_refused_in_plain_words(db: None) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/theme/", {"theme": "dark"})
    assert response.status_code == 403
    assert "This form has expired" in response.text


def test_what_is_not_there_is_said_on_a_page(viewer: Client) -> None:
    response = viewer.get("/environments/999999/")
    assert response.status_code == 404
    assert "Nothing here" in response.text


def test_the_page_for_our_own_faults_needs_no_database(client: Client) -> None:
    from django.http import HttpRequest

    from webapp.views.errors import broken

    response = broken(HttpRequest())
    assert response.status_code == 500
    assert "Something broke" in response.text

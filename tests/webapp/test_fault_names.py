"""Whatever can go wrong at an endpoint is named, in plain words, where people look."""

from __future__ import annotations

import html

import pytest
from django.test import Client

from evolution.agents.asking import ask
from evolution.llm.calls import CallOutcome
from tests.harness.calls import BOUNDS, question
from tests.harness.lineages import endpoint, gateway_to
from tests.harness.server import Fault, FaultPlan, ModelServer
from tests.harness.server.faults import SLUGGISH
from tests.harness.server.models.parts import answer
from tests.webapp.rows import make_child, make_seed, make_user
from webapp.adapters.calls import DatabaseCallLog
from webapp.models import Environment, ModelCall, Role
from webapp.services.calls import Place

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = {
    Fault.RATE_LIMITED: "too many requests (429",
    Fault.SERVER_ERROR: "the endpoint failed (500",
    Fault.BAD_GATEWAY: "the endpoint failed (502: a page of HTML",
    Fault.OVERLOADED: "the endpoint failed (503",
    Fault.RESET: "the connection broke before an answer came",
    Fault.CUT: "the connection ended in the middle of the answer",
    Fault.SLOW: "it comes too slowly",
    Fault.HANG: "nothing came at all",
    Fault.TRUNCATED: "JSON that ends too early",
    Fault.HTML: "the answer is a page of HTML",
    Fault.HUGE: "the answer is larger than 8 MiB",
    Fault.NAN_USAGE: "what it tells as usage is no count of tokens",
    Fault.WRONG_MODEL: "another model answers: gpt-of-somebody-else",
    Fault.REFUSAL: "the model refuses: I can't help with that.",
    Fault.EMPTY: "the answer is empty",
    Fault.BAD_ARGUMENTS: "arguments that are no JSON",
    Fault.WRONG_SCHEMA: "an object of another shape than asked for",
    Fault.NOWHERE: "a call of a tool that does not exist: make_it_so",
    Fault.WRONG_LANGUAGE: "an answer in another language, as prose",
    Fault.CONTEXT: "the request is too long (400",
}
"""What the pages say of a call that suffered a fault of this kind."""


def suffer(fault: Fault, child: Environment) -> ModelCall:
    """The record of a call, the first of the making of `child`, that this befell."""
    assert child.step is not None
    place = Place(run=child.run, step=child.step)
    script = {"reviewer": lambda asked: answer(asked, accepted=True)}
    timeout = 1 if fault in SLUGGISH else 30
    with ModelServer(script, faults=FaultPlan(at={1: fault})) as server:
        models = endpoint(server.url, "reviewer", f"timeout={timeout}")
        with DatabaseCallLog(place) as log, gateway_to(models, log) as gateway:
            ask(gateway, question("stage"), BOUNDS)
            log.give_to(child)
    first = ModelCall.objects.order_by("pk").first()
    assert first is not None
    return first


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_is_named_on_both_pages(fault: Fault, client: Client) -> None:
    child = make_child(make_seed())
    call = suffer(fault, child)
    client.force_login(make_user("ana", Role.VIEWER))
    for url in (
        f"/environments/{child.pk}/making/",
        f"/runs/{child.run_id}/calls/?outcome=faults",
        f"/calls/{call.pk}/",
    ):
        text = html.unescape(client.get(url).text)
        assert NAMES[fault] in text, (url, call.reason)
        assert f"calls/{call.pk}/" in text or f"call {call.pk}" in text
    if call.outcome == CallOutcome.ANSWERED:
        assert "answered with a fault" in client.get(f"/calls/{call.pk}/").text


def test_no_two_faults_have_the_same_name() -> None:
    assert len(set(NAMES.values())) == len(Fault)


def test_an_answer_in_form_has_no_fault(client: Client) -> None:
    child = make_child(make_seed())
    suffer(Fault.EMPTY, child)
    good = ModelCall.objects.get(outcome=CallOutcome.ANSWERED)
    assert good.reason == ""
    client.force_login(make_user("ana", Role.VIEWER))
    assert f"calls/{good.pk}/" not in client.get(f"/runs/{child.run_id}/calls/?outcome=faults").text

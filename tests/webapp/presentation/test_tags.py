"""Words of the templates."""

from __future__ import annotations

from webapp.templatetags.ratchet import event_kind


def test_the_kind_of_an_event_is_said_in_the_words_of_the_pages() -> None:
    assert event_kind("evolutionstep.status") == "step status"
    assert event_kind("environment.verification") == "environment verification"
    assert "\x1b" not in event_kind("\x1b[31mplan")

"""The models that the server serves, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.harness.server.models.competent import Competent
from tests.harness.server.models.craft import Workshop
from tests.harness.server.models.others import Gullible, Hopeless, Hostile
from tests.harness.server.models.parts import answer
from tests.harness.server.models.sloppy import Sloppy
from tests.harness.server.wire import Script

NOTHING = (Hopeless, Hostile)
"""Models of whose work nothing is ever accepted, in any direction."""


def all_models() -> Mapping[str, Script]:
    """Every scripted model; `formal` says as little as the form allows."""
    shared = Workshop()
    return {
        "competent": Competent(shared),
        "sloppy": Sloppy(shared),
        "hopeless": Hopeless(shared),
        "gullible": Gullible(shared),
        "hostile": Hostile(shared),
        "formal": answer,
    }

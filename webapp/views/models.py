"""Which models play which roles, and what the last doctor found. No key is ever here."""

from __future__ import annotations

from django.http.response import HttpResponseBase

from webapp.http import Request, allow, answer
from webapp.models import Role
from webapp.selectors import model_settings


@allow(Role.OPERATOR)
def model_list(request: Request) -> HttpResponseBase:
    """Role, model, price, and whether it answered when it was last asked."""
    return answer(request, "webapp/models.html", {"shown": model_settings.model_settings()})

"""Signing in, slowed down after repeated failures."""

from __future__ import annotations

import hashlib

from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest

MAX_FAILURES = 8
WINDOW_SECONDS = 300


def throttle_key(request: HttpRequest, username: str) -> str:
    """The counter of one name from one address."""
    who = f"{request.META.get('REMOTE_ADDR', '')}\0{username.lower()}"
    return f"sign-in-failures:{hashlib.sha256(who.encode()).hexdigest()}"


class SignInForm(AuthenticationForm):
    """Name and password; after eight failures within five minutes nothing is tried any more."""

    error_messages = {
        "invalid_login": "This name and password do not fit together.",
        "inactive": "This account is switched off.",
    }

    @property
    def is_throttled(self) -> bool:
        """Whether this name has failed too often from this address."""
        return self._failures() >= MAX_FAILURES

    def clean(self) -> dict[str, object]:
        """Count failures; forget them after a success."""
        if self.is_throttled:
            raise ValidationError("Too many attempts. Wait five minutes, then try again.")
        key = self._key()
        try:
            cleaned = super().clean()
        except ValidationError:
            cache.add(key, 0, WINDOW_SECONDS)
            cache.incr(key)
            raise
        cache.delete(key)
        return cleaned

    def _key(self) -> str:
        assert self.request is not None
        return throttle_key(self.request, str(self.data.get("username", ""))[:150])

    def _failures(self) -> int:
        return int(cache.get(self._key(), 0))

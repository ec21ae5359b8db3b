"""The Django application."""

from __future__ import annotations

from django.apps import AppConfig


class WebappConfig(AppConfig):
    """Everything that is stored and shown."""

    name = "webapp"
    verbose_name = "Ratchet"

    def ready(self) -> None:
        """Make our Celery application the current one, so that jobs sent from here reach it."""
        from webapp import celery  # noqa: F401

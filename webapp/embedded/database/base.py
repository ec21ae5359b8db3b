"""The connection: like Django's, but the server is found, or started, at the first use."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from django.db.utils import OperationalError as DjangoOperationalError
from psycopg import OperationalError

from webapp.embedded.errors import EmbeddedUnavailable
from webapp.embedded.postgres import EmbeddedPostgres, shared


def server() -> EmbeddedPostgres:
    """This process's handle on the server of the configured home."""
    return shared(settings.RATCHET_HOME, is_durable=settings.EMBEDDED_POSTGRES_IS_DURABLE)


class DatabaseWrapper(base.DatabaseWrapper):
    """Starts the server when it must, and looks again when it went away."""

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        params["host"] = self._host(is_checked=False)
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except OperationalError:
            again = {**conn_params, "host": self._host(is_checked=True)}
            return super().get_new_connection(again)

    def _host(self, *, is_checked: bool) -> str:
        try:
            return str(server().ensure_running(is_checked=is_checked))
        except EmbeddedUnavailable as error:
            raise DjangoOperationalError(str(error)) from error

"""One record, one line: a line break in a message cannot forge another record."""

from __future__ import annotations

import logging


class OneLineFormatter(logging.Formatter):
    """Escapes line breaks and control characters of the message; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        record.message = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode()
            for character in record.message
        )
        return super().formatMessage(record)

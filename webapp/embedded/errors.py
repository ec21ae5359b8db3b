"""What can break in the embedded services."""

from __future__ import annotations


class EmbeddedUnavailable(Exception):
    """An embedded service cannot run here. The message is one line: what, where, what to do."""

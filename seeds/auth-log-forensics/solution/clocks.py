"""Times in logs whose clocks are set to UTC."""

from calendar import timegm
from datetime import datetime
from pathlib import Path


class Clock:
    """The clock of one host."""

    def __init__(self, data: Path, host: str) -> None:
        self.host = host

    def second(self, line: str) -> int:
        """The time at the start of a line, in seconds."""
        return timegm(datetime.fromisoformat(line[:19]).timetuple())

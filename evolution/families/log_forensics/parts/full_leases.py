"""Which device held an address at a time."""

import csv
from calendar import timegm
from datetime import datetime
from pathlib import Path


def seconds(text: str) -> int:
    """A UTC time as seconds."""
    return timegm(datetime.fromisoformat(text.rstrip("Z")).timetuple())


class Book:
    """The leases in order."""

    def __init__(self, path: Path) -> None:
        with open(path, newline="") as file:
            self.rows = [
                (seconds(row["from_utc"]), seconds(row["until_utc"]), row)
                for row in csv.DictReader(file)
            ]

    def holder(self, address: str, second: int) -> tuple[str, str]:
        """Device and owner at that second."""
        for begin, until, row in self.rows:
            if row["address"] == address and begin <= second < until:
                return row["device"], row["owner"]
        return "unknown", "unknown"

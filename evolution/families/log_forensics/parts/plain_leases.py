"""Which device has an address."""

import csv
from pathlib import Path


class Book:
    """The leases by address."""

    def __init__(self, path: Path) -> None:
        with open(path, newline="") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: row["from_utc"])
        self.latest = {row["address"]: (row["device"], row["owner"]) for row in rows}

    def holder(self, address: str, second: int) -> tuple[str, str]:
        """Device and owner."""
        return self.latest[address]

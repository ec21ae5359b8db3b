"""Times in logs whose clocks are ahead of UTC by an offset that may change."""

import csv
from calendar import timegm
from datetime import datetime
from pathlib import Path


def seconds(text: str) -> int:
    """A time as seconds, taken as UTC."""
    return timegm(datetime.fromisoformat(text).timetuple())


class Clock:
    """The clock of one host; lines must be given in the order in which they were written."""

    def __init__(self, data: Path, host: str) -> None:
        spans = []
        if (data / "clocks.csv").exists():
            with open(data / "clocks.csv", newline="") as file:
                for row in csv.DictReader(file):
                    if row["host"] == host:
                        begin = seconds(row["from_utc"].rstrip("Z"))
                        spans.append((begin, 60 * int(row["minutes_ahead"])))
        spans = sorted(spans) or [(0, 0)]
        ends = [begin for begin, _ in spans[1:]] + [10**11]
        self.spans = [(*span, ends[number]) for number, span in enumerate(spans)]
        self.last = 0

    def second(self, line: str) -> int:
        """The UTC second of a line: the earliest fitting one that is not before the last line's."""
        shown = seconds(line[:19])
        fitting = [
            shown - ahead for begin, ahead, end in self.spans if begin <= shown - ahead < end
        ]
        later = [second for second in sorted(fitting) if second >= self.last]
        self.last = later[0] if later else self.last
        return self.last

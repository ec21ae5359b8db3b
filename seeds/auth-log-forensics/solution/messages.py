"""What sshd says about passwords."""

import re
from typing import NamedTuple

KNOWS_BROKEN_LINES = False
BROKEN = object()
MESSAGE = re.compile(
    r"\S+ \S+ sshd\[\d+\]: (Failed|Accepted) password for (?:invalid user )?(\S+) "
    r"from (\S+) port \d+ ssh2"
)


class Message(NamedTuple):
    """One attempt, or several alike."""

    is_accepted: bool
    user: str
    source: str
    times: int = 1


def read(line: str) -> object:
    """The attempt that a line tells of, None for any other line."""
    match = MESSAGE.match(line)
    return Message(match[1] == "Accepted", match[2], match[3]) if match else None

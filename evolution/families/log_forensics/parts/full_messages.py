"""What sshd says about passwords, in logs that shorten, cut off, and repeat hostile names."""

import re
from typing import NamedTuple

KNOWS_BROKEN_LINES = True
BROKEN = object()
HEAD = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d \S+ ([\w.-]+)(?:\[\d+\])?: (.*)")
REPEATED = re.compile(r"message repeated (\d+) times: \[ (.*)\]")
# Names may hold anything, so the end of the text counts, not its first fitting part.
ATTEMPT = re.compile(
    r"(Failed|Accepted) password for (?:invalid user )?(.*) from (\S+) port \d+ ssh2"
)
BEGINNINGS = ("Failed ", "Accepted ", "message repeated ")


class Message(NamedTuple):
    """One attempt, or several alike."""

    is_accepted: bool
    user: str
    source: str
    times: int = 1


def read(line: str) -> object:
    """The attempt that a line tells of, None for any other line, BROKEN for what is left of one."""
    head = HEAD.fullmatch(line)
    if not head:
        return BROKEN
    program, text = head[1], head[2]
    if program != "sshd" or not text.startswith(BEGINNINGS):
        return None
    count = 1
    repeated = REPEATED.fullmatch(text)
    if repeated:
        count, text = int(repeated[1]), repeated[2]
    attempt = ATTEMPT.fullmatch(text)
    if not attempt:
        return BROKEN
    return Message(attempt[1] == "Accepted", attempt[2], attempt[3], count)

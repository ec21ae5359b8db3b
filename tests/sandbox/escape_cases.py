"""What a hostile command must not reach. Functions of a `Bench`.

Each attempt is really made, as root inside and where it makes sense as an ordinary user; each
shows that its tool works by something that is allowed; and the host is looked at afterwards.
"""

from __future__ import annotations

from tests.sandbox import (
    escape_cases_bombs,
    escape_cases_calls,
    escape_cases_files,
    escape_cases_host,
)

CALLS = escape_cases_calls.CASES
OTHERS = (*escape_cases_host.CASES, *escape_cases_files.CASES)
BOMBS = escape_cases_bombs.CASES
CASES = (*CALLS, *OTHERS)

"""Text from bundles and sandboxes as one line that a terminal, a database and a person can take."""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\U000e0000-\U000e007f]"
)


def plain(text: str) -> str:
    """Text as one line that hides nothing and commands no terminal: what cannot be seen is spelt.

    The answer holds no NUL and no lone surrogate, so that a database takes it, too.
    """
    return _UNSEEN.sub(lambda match: repr(match[0])[1:-1], text)

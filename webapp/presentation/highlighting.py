"""Source text in colours: Pygments, by CSS class only, remembered by content."""

from __future__ import annotations

import functools

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.configs import DockerLexer
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound

HIGHLIGHT_CAP = 60_000
"""Longer texts, in characters, are shown without colours."""

_formatter = HtmlFormatter(nowrap=True, classprefix="c-")


def highlight_lines(path: str, text: str) -> tuple[SafeString, ...]:
    """One piece of safe HTML per line; a final newline makes no line of its own."""
    body = text.removesuffix("\n")
    if len(body) > HIGHLIGHT_CAP:
        return tuple(mark_safe(escape(line)) for line in body.split("\n"))
    return _remembered(path.rsplit("/", 1)[-1], body)


@functools.lru_cache(maxsize=256)
def _remembered(name: str, text: str) -> tuple[SafeString, ...]:
    try:
        lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        kind = DockerLexer if name == "Dockerfile" else TextLexer
        lexer = kind(stripnl=False, ensurenl=False)
    html = highlight(f"{text}\n", lexer, _formatter)  # so that empty last lines stay
    return tuple(mark_safe(line) for line in html.split("\n")[:-1])

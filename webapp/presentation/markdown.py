"""Markdown of untrusted authors as safe HTML: rendered, then rebuilt from an allow-list."""

from __future__ import annotations

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from webapp.presentation.text import excerpt

_TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote"),
    *("code", "pre", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"),
}
_DEMOTED = {f"h{level}": f"h{min(level + 2, 6)}" for level in range(6, 0, -1)}
_parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_cleaner = nh3.Cleaner(
    tags=_TAGS,
    attributes={"a": {"href", "title"}, "ol": {"start"}},
    url_schemes={"http", "https"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
)


def render(source: str) -> SafeString:
    """Safe HTML: no raw HTML, no images, no scripts, links to http(s) only, headings demoted."""
    tokens = _parser.parse(excerpt(source, cap=60_000).text)
    for token in tokens:
        token.tag = _DEMOTED.get(token.tag, token.tag)
    html = _parser.renderer.render(tokens, _parser.options, {})
    return mark_safe(_cleaner.clean(html))

"""Markdown of untrusted authors."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.presentation.markdown import render

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "![x](https://evil.example/pixel.png)",
    "<a href='javascript:alert(1)'>x</a>",
    '[x](https://a.example "onmouseover=alert(1)")',
    "<svg/onload=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "`<script>alert(1)</script>`",
    "[x]: javascript:alert(1)\n\n[x]",
    "<style>body{display:none}</style>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=1>'>",
)
_TAG = re.compile(r"<(/?[a-zA-Z][^\s>]*)([^>]*)>")
_KNOWN = {
    *("p", "br", "hr", "h3", "h4", "h5", "h6", "strong", "em", "s", "blockquote", "code", "pre"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"),
}


def assert_harmless(html: str) -> None:
    for name, attributes in _TAG.findall(html):
        assert name.lstrip("/") in _KNOWN, name
        for attribute in re.findall(r"([a-zA-Z-]+)=", re.sub(r'"[^"]*"', '""', attributes)):
            assert attribute in {"href", "title", "rel", "start"}, attribute
        for target in re.findall(r'href="([^"]*)"', attributes):
            assert target.startswith(("http://", "https://")), target


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_that_runs_or_loads_gets_through(payload: str) -> None:
    assert_harmless(render(payload))


@given(st.text(alphabet="<>\"'&;=:()[]!`*_#-/ \nascriptjvonerhf"))
def test_no_text_makes_other_tags_or_attributes(text: str) -> None:
    assert_harmless(render(text))


def test_ordinary_markdown_reads_well() -> None:
    html = render(
        "# Task\n\nDo **this** in `/app`:\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    )
    assert "<h3>Task</h3>" in html
    assert "<strong>this</strong>" in html
    assert "<code>/app</code>" in html
    assert html.count("<li>") == 2
    assert "<td>2</td>" in html


def test_links_lead_out_without_a_referrer() -> None:
    assert 'rel="noopener noreferrer nofollow"' in render("[site](https://example.com)")

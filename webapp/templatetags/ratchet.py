"""The small parts that every page shares: icons, state chips, cell marks, times, digests."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from webapp.models import Role, User
from webapp.models.review import REASON_LABELS
from webapp.presentation import marks
from webapp.presentation.text import clean as clean_text

register = template.Library()
_NO_TEXT = SafeString("")
_SHAPES = {
    "circle": '<circle cx="8" cy="8" r="5.5"/>',
    "square": '<path d="M3 3h10v10H3z"/>',
    "triangle": '<path d="M8 2.5L14 13.5H2z"/>',
    "ring": '<circle cx="8" cy="8" r="4.5" class="hollow"/>',
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """A drawing of the set, hidden from screen readers (a word stands beside it)."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">{}</svg>',
        mark_safe(marks.ICONS.get(name, "")),
    )


@register.simple_tag
def state(value: str) -> SafeString:
    """A status as a chip: icon and word, coloured by tone."""
    shown = marks.state(value)
    return format_html(
        '<span class="state {}">{}<span>{}</span></span>', shown.tone, icon(shown.icon), shown.label
    )


@register.simple_tag
def mark(direction: str, aspect: str) -> SafeString:
    """A cell of the grid as a coloured shape, with its words for those who cannot see it."""
    shape = _SHAPES[marks.SHAPES.get(aspect, "ring")]
    words = f"{direction} × {aspect}" if direction and aspect else direction or "seed"
    return format_html(
        '<svg class="mark dir-{}" viewBox="0 0 16 16" width="14" height="14" role="img" '
        'aria-label="{}"><title>{}</title>{}</svg>',
        direction if direction in marks.DIRECTIONS else "none",
        words,
        words,
        mark_safe(shape),
    )


@register.simple_tag
def ago(moment: datetime | None) -> SafeString:
    """A time relative to now, the exact one on hover."""
    if moment is None:
        return format_html('<span class="quiet">{}</span>', "–")
    seconds = int((timezone.now() - moment).total_seconds())
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        moment.isoformat(),
        f"{moment:%Y-%m-%d %H:%M:%S}",
        _relative(seconds),
    )


def _relative(seconds: int) -> str:
    if abs(seconds) < 10:
        return "just now"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if abs(seconds) >= size:
            count = abs(seconds) // size
            return f"{count} {unit} ago" if seconds >= 0 else f"in {count} {unit}"
    return "just now"


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as a length of time: 0.42 s, 12.3 s, 4 min 05 s, 2 h 10 min."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


@register.simple_tag
def digest(value: str) -> SafeString:
    """A digest shortened to eight digits; a click copies the whole."""
    return format_html(
        '<code class="digest" title="{}" data-copy="{}">{}</code>', value, value, value[:8]
    )


@register.filter
def num(value: float | int | str | None, digits: int = 2) -> str:
    """A number for a table: grouped integers, a fixed number of decimals, a dash for none."""
    if value is None or isinstance(value, str):  # Django's word for a missing value is ""
        return "–"
    if isinstance(value, int) or (float(value).is_integer() and digits == 0):
        return f"{int(value):,}"
    return f"{value:,.{digits}f}"


@register.filter
def percent(value: float | None) -> str:
    """A share as a whole percentage."""
    return "–" if value is None else f"{100 * value:.0f} %"


@register.filter
def usd(value: float | str | None, is_estimated: bool = False) -> str:
    """US dollars, small sums with the digits that count; ≈ before an estimate."""
    if value is None or isinstance(value, str):
        return "–"
    digits = 2 if value >= 1 or value == 0 else 4
    shown = "< 0.0001" if 0 < value < 0.0001 else f"{value:,.{digits}f}"
    return f"≈ {shown}" if is_estimated else shown


@register.filter
def bytes_size(value: int | None) -> str:
    """A size in bytes, kB or MB (powers of 1,000)."""
    if value is None:
        return "–"
    if value < 1_000:
        return f"{value} B"
    return f"{value / 1_000:.1f} kB" if value < 1_000_000 else f"{value / 1_000_000:.1f} MB"


@register.filter
def clean(value: Any) -> str:
    """Text of unknown origin without terminal escapes; escaped like any other afterwards."""
    return clean_text(str(value))


@register.filter
def may(user: Any, role: str) -> bool:
    """Whether the person has this role or a higher one."""
    return isinstance(user, User) and user.has_role(Role[role.upper()])


@register.filter
def words(value: str) -> str:
    """An identifier as words."""
    return value.replace("_", " ").replace(".", " ")


@register.filter
def event_kind(value: str) -> str:
    """What an event is about, in the words of the pages."""
    return words(clean_text(value)).replace("evolutionstep", "step").replace("evolutionrun", "run")


@register.filter
def unlocalize_number(value: float) -> str:
    """A number for an SVG attribute: a point, at most three decimals."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


@register.simple_tag
def reason(code: str) -> str:
    """A reviewer's reason in words."""
    return REASON_LABELS.get(code, code)


@register.filter
def sandbox(names: str) -> str:
    """Back-ends, joined by ", ", in words; a dash for none."""
    shown = [marks.SANDBOXES.get(name, clean_text(name)) for name in names.split(", ") if name]
    return "; ".join(shown) or "–"

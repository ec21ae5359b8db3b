"""Plain tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their content; what is no text is set to the right."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [
        max(len(head), *(len(row[column]) for row in cells)) if cells else len(head)
        for column, head in enumerate(heads)
    ]
    is_text = [all(isinstance(row[n], str) for row in rows) for n in range(len(heads))]
    lines = []
    for row in ([*heads], ["-" * width for width in widths], *cells):
        parts = [
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def shown(cell: object) -> str:
    """A number with three figures that count; nothing as a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell >= 100 else f"{cell:.3g}"
    return str(cell)

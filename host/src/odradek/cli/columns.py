"""Tables as Kafka's tools print them: a heading, then rows; plain columns for scripts to split at blanks."""

from __future__ import annotations

from collections.abc import Sequence

MISSING = "-"
"""A value that there is not."""
Column = tuple[str, int]
"""Heading and least width."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
    """The heading and the rows; each column as wide as its widest cell, and at least its least width.

    Args:
        columns: What the columns are.
        rows: A cell for each column; None is missing.
    """
    texts = [[MISSING if cell is None else str(cell) for cell in row] for row in rows]
    widths = [
        max(width, len(heading), *(len(row[index]) for row in texts)) if texts else max(width, len(heading))
        for index, (heading, width) in enumerate(columns)
    ]
    return [
        " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        for cells in [[heading for heading, _ in columns], *texts]
    ]

"""Tables as Kafka's tools print them: a heading, then rows, in columns that scripts can split at spaces."""

from __future__ import annotations

from collections.abc import Sequence

MISSING = "-"
"""The text of a missing value."""
Column = tuple[str, int]
"""Heading and minimum width."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> list[str]:
    """The heading and the rows. Each column is as wide as its widest cell, but not below its minimum.

    Args:
        columns: Heading and minimum width of each column.
        rows: One cell per column; None is a missing value.
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

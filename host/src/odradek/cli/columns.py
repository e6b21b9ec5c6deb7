"""Tables as Kafka's tools print them: a heading, then rows, in columns that scripts can split at spaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

MISSING = "-"
"""The text of a missing value."""
Column = tuple[str, int]
"""Heading and minimum width."""


class Table(NamedTuple):
    """A table, for people as lines and for scripts as objects."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[object]]
    """One cell per column; None is a missing value."""

    def lines(self) -> list[str]:
        """The heading and the rows. Each column is as wide as its widest cell, but not below its minimum."""
        texts = [[MISSING if cell is None else str(cell) for cell in row] for row in self.rows]
        headings = [heading for heading, _ in self.columns]
        widths = [
            max(least, *(len(row[index]) for row in (headings, *texts)))
            for index, (_, least) in enumerate(self.columns)
        ]
        return [
            " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
            for cells in (headings, *texts)
        ]

    def without(self, index: int) -> Table:
        """The table without one of its columns."""
        columns = [*self.columns[:index], *self.columns[index + 1 :]]
        return Table(columns, [[*row[:index], *row[index + 1 :]] for row in self.rows])

    def objects(self) -> Iterator[Mapping[str, object]]:
        """Yield each row by the names of the columns: ``NEW-OFFSET`` becomes ``new_offset``."""
        names = [heading.lower().replace("-", "_") for heading, _ in self.columns]
        for row in self.rows:
            yield dict(zip(names, row, strict=True))

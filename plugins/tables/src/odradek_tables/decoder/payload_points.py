"""The data points of one payload as numbers: the result of both decoders."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
INT64_MAX: Final = 2**63 - 1
"""The columns of the tables are signed, OTLP's counts and times are not: this stands for larger ones."""


@dataclass(slots=True)
class PayloadPoints:
    """Gauges and sums as parallel arrays, histograms and summaries as rows.

    ``series`` and ``resources`` are indexes into the decoder's `Numbered` tables. ``values`` are the 64 bits
    of the value, a double or an integer depending on the series; 0 if there is none.
    """

    series: Int32s
    times: Int64s
    """Unsigned 64-bit nanoseconds, like ``starts``; 0 if there is none."""
    starts: Int64s
    values: Int64s
    resources: int | Int32s
    """One index for all points, or one for each."""
    indexes: Int32s | None = None
    """The index of each data point in the payload; None if they are consecutive from 0."""
    exemplars: dict[int, str] = field(default_factory=dict)
    """By position in the arrays, as JSON."""
    histograms: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the table of histograms, without the columns of the record."""
    shape_id: int | None = None

    @property
    def count(self) -> int:
        """The number of data points, including histograms."""
        return len(self.series) + len(self.histograms)

    def after(self, others: int) -> PayloadPoints:
        """The same points, after as many others of the same record."""
        if not others or not self.count:
            return self
        indexes = np.arange(len(self.series), dtype=np.int32) if self.indexes is None else self.indexes
        histograms = [row | {"src_idx": row["src_idx"] + others} for row in self.histograms]
        return replace(self, indexes=indexes + np.int32(others), histograms=histograms)

"""The data points of one payload, as numbers; how each path of the decoder hands them on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(slots=True)
class PayloadPoints:
    """Gauges and sums as parallel arrays, histograms and summaries as rows.

    ``series`` and ``resources`` are numbers of the `Numbered` tables they were made with. ``values`` are the
    64 bits of the number, a double or an integer as the series says; zeros where there is none.
    """

    series: Int32s
    times: Int64s
    """Unsigned nanoseconds in 64 bits, like ``starts``; 0 where there is none."""
    starts: Int64s
    values: Int64s
    resources: int | Int32s
    """One for all, or one for each."""
    indexes: Int32s | None = None
    """Which data point of the payload each is; None when they are counted off."""
    exemplars: dict[int, str] = field(default_factory=dict)
    """By position in the arrays, as JSON."""
    histograms: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the table of histograms, without what the record says."""
    shape_id: int | None = None

    @property
    def count(self) -> int:
        """All data points."""
        return len(self.series) + len(self.histograms)

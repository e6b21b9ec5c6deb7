"""The topic as Spark reads it since version 4.2: in limited batches, to its end with ``AvailableNow``."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from odradek_spark.source.offsets import limited
from odradek_spark.source.stream import Cut, TopicStream


class LimitedTopicStream(TopicStream, SupportsTriggerAvailableNow):
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's names
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        return ReadMaxBytes(self.options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last_offsets = self.ends()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.shown(self.ends())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802
        return self.next_end(start, self.cut_by(limit))

    def cut_by(self, limit: ReadLimit) -> Cut:
        if isinstance(limit, ReadAllAvailable):
            return lambda begin, end: end
        if isinstance(limit, ReadMaxRows):
            return lambda begin, end: limited(begin, end, {}, limit.max_rows)
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes
        return lambda begin, end: self.within_bytes(begin, end, max_bytes)

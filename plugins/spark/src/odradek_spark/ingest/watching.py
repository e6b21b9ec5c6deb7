"""Watches a running ingest: its totals from the tables, and the waiting records from the topic.

With Spark's own writer there are no tables to ask, so the totals come from the query.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deltalake.exceptions import DeltaError

from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.ingest.status import NOTHING, Totals, batches_since, version
from odradek_spark.source.offsets import Offsets, backlog, from_json
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicError, TopicReader
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import PUSHES

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Show = Callable[[Totals, int | None], object]
"""Called with the totals since the start and the number of waiting records; None if that is unknown."""


@dataclass(slots=True)
class FromTables:
    """Totals from the history of the tables."""

    settings: IngestSettings
    seen_version: int
    total: Totals = NOTHING

    def look(self, query: StreamingQuery | None) -> bool:
        """Add new batches; return whether there were any."""
        if version(self.settings.dataset) == self.seen_version:
            return False
        came, self.seen_version = batches_since(self.settings.dataset, self.seen_version)
        self.total += came
        return bool(came.batches)

    def reached(self, first: Offsets) -> Offsets:
        """By partition: the offset up to which the topic is in the tables."""
        return first | Dataset(self.settings.dataset).source_offsets(PUSHES, self.settings.topic, list(first))


@dataclass(slots=True)
class FromQuery:
    """Totals from the query's reports about its batches; unreadable records count as pushes."""

    begin: Offsets
    """The start of a query without checkpoint."""
    total: Totals = NOTHING
    ends: dict[str, Offsets] = field(default_factory=dict)
    """By batch: its end."""

    def look(self, query: StreamingQuery | None) -> bool:
        """Add new batches; return whether there were any."""
        before = self.total
        for each in [] if query is None else query.recentProgress:
            self.add(str(each["batchId"]), each["numInputRows"], each["sources"][0])
        return self.total != before

    def add(self, batch: str, points: int, source: Any) -> None:
        """Add a batch, if it is new and not empty."""
        start, end = offsets(source["startOffset"]) or self.begin, offsets(source["endOffset"])
        if batch in self.ends or start == end:
            return
        self.ends[batch] = end
        self.total += Totals(1, backlog(start, end), points, 0)

    def reached(self, first: Offsets) -> Offsets:
        """By partition: the offset up to which the topic is in the tables."""
        return first | (list(self.ends.values())[-1] if self.ends else {})


def offsets(text: Any) -> Offsets:
    """The offsets in Spark's report about a source; empty for the beginning."""
    found = json.loads(text) if isinstance(text, str) else text
    return from_json(found or {})


class IngestWatch:
    """Pass it to `run_ingest` as ``watch``, inside ``with``.

    Args:
        settings: The settings of the ingest.
        show: Called after each batch.
    """

    def __init__(self, settings: IngestSettings, show: Show) -> None:
        self.settings, self.show = settings, show
        self.topic: TopicReader | None = None
        self.came: FromTables | FromQuery
        if settings.writer == "spark":
            is_latest = settings.starting_offsets == "latest"
            self.came = FromQuery({part: mark[is_latest] for part, mark in (self.marks() or {}).items()})
        else:
            self.came = FromTables(settings, version(settings.dataset))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.topic is not None:
            self.topic.close()

    @property
    def total(self) -> Totals:
        """The totals since the start."""
        return self.came.total

    def __call__(self, query: StreamingQuery | None = None) -> None:
        """Show a new batch, if there is one. A store that does not answer is asked again later."""
        with suppress(DeltaError, OSError):
            if self.came.look(query):
                self.show(self.total, self.waiting())

    def waiting(self) -> int | None:
        """Number of records in the topic that are not in the tables; None if the broker does not answer."""
        marks = self.marks()
        if marks is None:
            return None
        reached = self.came.reached({part: first for part, (first, _) in marks.items()})
        return backlog(reached, {part: end for part, (_, end) in marks.items()})

    def marks(self) -> dict[int, tuple[int, int]] | None:
        """By partition of the topic: the first offset and the end offset (last + 1); None if unknown."""
        with suppress(TopicError):
            if self.topic is None:
                self.topic = TopicReader(read_options(self.settings.options()))
            return self.topic.watermarks(self.topic.partitions())
        return None

"""What an ingest brought, and what waits, while it runs: from the tables and the topic.

By Spark's own writer there are no tables that tell: then the query is asked.
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
"""Takes what came since the start, and how many records wait; None if the broker does not say."""


@dataclass(slots=True)
class FromTables:
    """What came, by the history of the tables."""

    settings: IngestSettings
    seen_version: int
    total: Totals = NOTHING

    def look(self, query: StreamingQuery | None) -> bool:
        """Add what is new; whether there was any."""
        if version(self.settings.dataset) == self.seen_version:
            return False
        came, self.seen_version = batches_since(self.settings.dataset, self.seen_version)
        self.total += came
        return bool(came.batches)

    def reached(self, first: Offsets) -> Offsets:
        """Up to where each partition is in."""
        return first | Dataset(self.settings.dataset).source_offsets(PUSHES, self.settings.topic, list(first))


@dataclass(slots=True)
class FromQuery:
    """What came, by what the query says of its batches; pushes are those too that cannot be read."""

    begin: Offsets
    """Where a query begins that has no checkpoint."""
    total: Totals = NOTHING
    ends: dict[str, Offsets] = field(default_factory=dict)
    """By batch: where it ended."""

    def look(self, query: StreamingQuery | None) -> bool:
        """Add what is new; whether there was any."""
        before = self.total
        for each in [] if query is None else query.recentProgress:
            self.add(str(each["batchId"]), each["numInputRows"], each["sources"][0])
        return self.total != before

    def add(self, batch: str, points: int, source: Any) -> None:
        """A batch, if it is one that came and is new."""
        start, end = offsets(source["startOffset"]) or self.begin, offsets(source["endOffset"])
        if batch in self.ends or start == end:
            return
        self.ends[batch] = end
        self.total += Totals(1, backlog(start, end), points, 0)

    def reached(self, first: Offsets) -> Offsets:
        """Up to where each partition is in."""
        return first | (list(self.ends.values())[-1] if self.ends else {})


def offsets(text: Any) -> Offsets:
    """What Spark reports of a source; nothing for the beginning."""
    found = json.loads(text) if isinstance(text, str) else text
    return from_json(found or {})


class IngestWatch:
    """Give it to `run_ingest` as ``watch``, inside ``with``.

    Args:
        settings: Of the ingest.
        show: Called when a batch came.
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
        """What came since the start."""
        return self.came.total

    def __call__(self, query: StreamingQuery | None = None) -> None:
        """Look whether a batch came, and show it. A store that does not answer is asked again later."""
        with suppress(DeltaError, OSError):
            if self.came.look(query):
                self.show(self.total, self.waiting())

    def waiting(self) -> int | None:
        """Records that are in the topic and not in the tables; None if the broker does not say."""
        marks = self.marks()
        if marks is None:
            return None
        reached = self.came.reached({part: first for part, (first, _) in marks.items()})
        return backlog(reached, {part: end for part, (_, end) in marks.items()})

    def marks(self) -> dict[int, tuple[int, int]] | None:
        """By partition of the topic: the first offset, and the one behind the last."""
        with suppress(TopicError):
            if self.topic is None:
                self.topic = TopicReader(read_options(self.settings.options()))
            return self.topic.watermarks(self.topic.partitions())
        return None

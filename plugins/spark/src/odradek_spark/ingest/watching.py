"""Watches a running ingest: its totals from the tables, and the waiting records from the topic."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self

from deltalake.exceptions import DeltaError

from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.ingest.status import NOTHING, Totals, batches_since, version
from odradek_spark.source.offsets import backlog
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicError, TopicReader
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import PUSHES

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Show = Callable[[Totals, int | None], object]
"""Called with the totals since the start and the number of waiting records; None if that is unknown."""


class IngestWatch:
    """Pass it to `run_ingest` as ``watch``, inside ``with``.

    Args:
        settings: The settings of the ingest.
        show: Called after each batch.
    """

    def __init__(self, settings: IngestSettings, show: Show) -> None:
        self.settings, self.show = settings, show
        self.topic: TopicReader | None = None
        self.dataset = Dataset(settings.dataset, follows=True)
        self.seen_version = version(self.dataset)
        self.total = NOTHING
        """The totals since the start."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.topic is not None:
            self.topic.close()

    def __call__(self, query: StreamingQuery | None = None) -> None:
        """Show a new batch, if there is one. A store that does not answer is asked again later."""
        with suppress(DeltaError, OSError):
            if version(self.dataset) == self.seen_version:
                return
            came, self.seen_version = batches_since(self.dataset, self.seen_version)
            self.total += came
            if came.batches:
                self.show(self.total, self.waiting())

    def waiting(self) -> int | None:
        """Number of records in the topic that are not in the tables; None if the broker does not answer."""
        marks = self.marks()
        if marks is None:
            return None
        reached = {part: first for part, (first, _) in marks.items()}
        reached |= self.dataset.source_offsets(PUSHES, self.settings.topic, list(reached))
        return backlog(reached, {part: end for part, (_, end) in marks.items()})

    def marks(self) -> dict[int, tuple[int, int]] | None:
        """By partition of the topic: the first offset and the end offset (last + 1); None if unknown."""
        with suppress(TopicError):
            if self.topic is None:
                self.topic = TopicReader(read_options(self.settings.source_options()))
            return self.topic.watermarks(self.topic.partitions())
        return None

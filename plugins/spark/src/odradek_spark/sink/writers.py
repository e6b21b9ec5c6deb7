"""The writers of the sink: ``write`` runs in the workers, ``commit`` on the driver."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

from odradek_spark.sink.commit import Batch, commit
from odradek_spark.sink.dataset_root import check_new_root
from odradek_spark.sink.write_options import WriteOptions
from odradek_spark.sink.written import Written, write_batches
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import INGESTED

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import WriterCommitMessage

log = logging.getLogger(__name__)


class TablesWriter:
    def __init__(self, options: WriteOptions) -> None:
        self.options = options
        self.tables = INGESTED if options.table is None else (options.table,)
        check_new_root(options.root, self.tables[-1])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        written = Written(self.query_id())
        write_batches(iterator, self.options, written)
        return written

    def query_id(self) -> str | None:
        """The query whose batches have numbers; None for a batch write, also one inside a query."""
        return None

    def committed(self, messages: Sequence[WriterCommitMessage | None], number: int) -> None:
        found = cast("Sequence[Written | None]", messages)
        batch = Batch.of(found, number, allow_new_checkpoint=self.options.allow_new_checkpoint)
        if commit(Dataset(self.options.root), batch, self.tables):
            log.info("batch committed", extra={"table": self.tables[-1].name, **batch.info(0)})


class TablesStreamWriter(TablesWriter, DataSourceStreamArrowWriter):
    """The sink of a stream. Spark repeats a batch until its commit succeeds.

    ``abort`` deletes nothing: Spark also calls it after a commit that raised, and some tables may have the
    files.
    """

    def query_id(self) -> str | None:
        context = TaskContext.get()  # Spark passes the id to no method of a writer
        return None if context is None else context.getLocalProperty("sql.streaming.queryId")

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        self.committed(messages, batchId)


class TablesBatchWriter(TablesWriter, DataSourceArrowWriter):
    """The sink of a batch. A repetition adds rows of a table again, but no records of the topic."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.committed(messages, 0)

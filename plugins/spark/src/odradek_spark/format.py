"""What ``format("odradek")`` does for each of Spark's requests. Spark asks it in processes of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.source.options import OptionError, ReadOptions, read_options
from odradek_spark.source.stream import TopicBatch, TopicStream, row_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from odradek_spark.sink.writers import TablesBatchWriter, TablesStreamWriter

OLDEST: Final = (4, 1)
"""Since this version of Spark a sink gets Arrow batches."""
LIMITS: Final = (4, 2)
"""Since this version of Spark a source limits its batches."""


def version() -> tuple[int, ...]:
    """The version of Spark, without its last part."""
    found = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if found < OLDEST:
        raise OptionError(f"Spark {pyspark.__version__} is too old: use 4.1 or newer")
    return found


def schema(options: Mapping[str, str]) -> StructType:
    """The columns of the source, after a check of its options."""
    version()
    return from_arrow_schema(row_schema(read_options(options)))


def checked(options: Mapping[str, str], given: StructType) -> ReadOptions:
    """The options of the source."""
    found = read_options(options)
    names = row_schema(found).names
    if given.names != names:
        raise OptionError(f"the source has the columns {', '.join(names)}: omit schema(...), use select(...)")
    return found


def reader(options: Mapping[str, str], given: StructType) -> DataSourceReader:
    """The reader of a batch."""
    return TopicBatch(checked(options, given))


def stream_reader(options: Mapping[str, str], given: StructType) -> DataSourceStreamReader:
    """The reader of a stream."""
    if version() < LIMITS:
        return TopicStream(checked(options, given))
    from odradek_spark.source.limited_stream import LimitedTopicStream

    return LimitedTopicStream(checked(options, given))


def writer(options: Mapping[str, str], given: StructType, overwrite: bool) -> TablesBatchWriter:
    """The writer of a batch."""
    from odradek_spark.sink.write_options import write_options
    from odradek_spark.sink.writers import TablesBatchWriter

    return TablesBatchWriter(write_options(options, given.names, overwrite=overwrite))


def stream_writer(options: Mapping[str, str], given: StructType, overwrite: bool) -> TablesStreamWriter:
    """The writer of a stream."""
    from odradek_spark.sink.write_options import write_options
    from odradek_spark.sink.writers import TablesStreamWriter

    version()
    return TablesStreamWriter(write_options(options, given.names, overwrite=overwrite))

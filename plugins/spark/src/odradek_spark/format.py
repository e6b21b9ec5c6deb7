"""What ``format("odradek")`` reads, for each of Spark's requests. Spark asks it in processes of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark.sql.pandas.types import from_arrow_schema

from odradek_spark.source.options import OptionError, ReadOptions, read_options
from odradek_spark.source.stream import TopicStream, row_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

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


def source_schema(options: Mapping[str, str]) -> StructType:
    version()
    return from_arrow_schema(row_schema(read_options(options)))


def checked(options: Mapping[str, str], given: StructType) -> ReadOptions:
    """The options of the source, whose columns a user may have named."""
    found = read_options(options)
    names = row_schema(found).names
    if given.names != names:
        raise OptionError(f"the source has the columns {', '.join(names)}: omit schema(...), use select(...)")
    return found


def topic_stream(options: ReadOptions) -> TopicStream:
    if version() < LIMITS:
        return TopicStream(options)
    from odradek_spark.source.limited_stream import LimitedTopicStream

    return LimitedTopicStream(options)

"""``format("odradek")``: Spark finds `DefaultSource` by itself, by the beginning of this package's name.

Spark imports the package in every session that uses any Python data source, so nothing else is imported here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """The telemetry topic as a source, and the tables as a sink; `odradek_spark` has both."""

    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        from odradek_spark.format import source_schema

        return source_schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from odradek_spark.format import checked
        from odradek_spark.source.stream import TopicBatch

        return TopicBatch(checked(self.options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        from odradek_spark.format import checked, topic_stream

        return topic_stream(checked(self.options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from odradek_spark.sink.write_options import write_options
        from odradek_spark.sink.writers import TablesBatchWriter

        return TablesBatchWriter(write_options(self.options, schema.names, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from odradek_spark.format import version
        from odradek_spark.sink.write_options import write_options
        from odradek_spark.sink.writers import TablesStreamWriter

        version()
        return TablesStreamWriter(write_options(self.options, schema.names, overwrite=overwrite))

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
    """The telemetry topic as a source, and the tables as a sink; `odradek_spark.format` has both."""

    @classmethod
    def name(cls) -> str:
        return "odradek"

    def schema(self) -> StructType:
        from odradek_spark.format import schema

        return schema(self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        from odradek_spark.format import reader

        return reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        from odradek_spark.format import stream_reader

        return stream_reader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from odradek_spark.format import writer

        return writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from odradek_spark.format import stream_writer

        return stream_writer(self.options, schema, overwrite)

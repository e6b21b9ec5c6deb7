"""``format("odradek")`` whose commits fail: Spark commits in a process of its own, which a test cannot patch.

The file ``faults`` beside the tables has the number of commits that succeed, and the error and number of the
next ones.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.types import StructType

from odradek_spark.sink.write_options import write_options
from odradek_spark.sink.writers import TablesStreamWriter
from odradek_tables.dataset import Dataset, DatasetError
from pyspark_odradek import DefaultSource


def plan(root: Path, good: int, error: str, times: int) -> None:
    """Have commits fail: after ``good`` of them, ``times`` fail with an error."""
    (root.parent / "faults").write_text(json.dumps([good, error, times]))


class FaultyWriter(TablesStreamWriter):
    """Fails as planned."""

    def committed(self, messages: Sequence[Any], number: int) -> None:
        faults = Path(self.options.root).parent / "faults"
        append = Dataset.append

        def failing(self: Dataset, *arguments: Any, **options: Any) -> bool:
            good, error, times = json.loads(faults.read_text()) if faults.exists() else (0, "", 0)
            if times and not good:
                faults.write_text(json.dumps([good, error, times - 1]))
                raise OSError(28, error) if error.startswith("No space") else DatasetError(error)
            if good:
                faults.write_text(json.dumps([good - 1, error, times]))
            return append(self, *arguments, **options)

        Dataset.append = failing  # type: ignore[method-assign]
        try:
            super().committed(messages, number)
        finally:
            Dataset.append = append  # type: ignore[method-assign]


class FaultySource(DefaultSource):
    """Replaces ``odradek`` after ``spark.dataSource.register(FaultySource)``."""

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return FaultyWriter(write_options(self.options, schema.names, overwrite=overwrite))

"""Files of earlier versions are rewritten by a command."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from click.testing import CliRunner
from spark_dataset import Push, ingested

from odradek_spark.cli.main import spark
from odradek_spark.jobs.compact import is_old
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import POINTS


def test_old_files_are_rewritten_and_no_others(tmp_path: Path) -> None:
    pushed = [Push(client=client, value=float(client), at_s=3_600.0 * client) for client in (1, 2)]
    dataset = ingested(str(tmp_path), pushed)
    before = files(dataset)
    whole = pq.ParquetFile(before[0]).read()
    pq.write_table(whole, before[0], use_dictionary=False, column_encoding={"value": "BYTE_STREAM_SPLIT"})
    assert [is_old(each) for each in before] == [True, False]

    outputs = [CliRunner().invoke(spark, ["rewrite", "--dataset", dataset.root]).output for _ in range(2)]

    after = files(dataset)
    assert outputs == ["rewrite: 1 files\n", "rewrite: 0 files\n"]
    assert before[0] not in after
    assert before[1] in after
    assert not any(map(is_old, after))
    rows = dataset.existing(POINTS).to_pyarrow_table().sort_by("value")
    assert rows["value"].to_pylist() == [1.0, 2.0]
    assert rows["client_id"].to_pylist() == ["client-1", "client-2"]


def files(dataset: Dataset) -> list[str]:
    return sorted(each.removeprefix("file://") for each in dataset.existing(POINTS).file_uris())

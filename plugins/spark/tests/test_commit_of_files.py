"""The driver commits only files in the folder of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from spark_dataset import Push, ingested, record

from odradek_spark.cli.main import spark
from odradek_spark.decoder.decode import Decoder
from odradek_spark.ingest.commit import check_written
from odradek_spark.tables.dataset import DatasetError
from odradek_spark.tables.files import write_files
from odradek_spark.tables.schemas import POINTS


def test_files_that_workers_wrote_elsewhere_are_not_committed(tmp_path: Path) -> None:
    dataset = ingested(str(tmp_path / "driver"), [Push(client=1, value=1.0)])
    points = Decoder().decode([record(Push(client=1, value=2.0), 1)]).points
    here = write_files(dataset.root, POINTS, points)
    elsewhere = write_files(str(tmp_path / "worker"), POINTS, points)

    check_written(dataset, here)

    with pytest.raises(
        DatasetError, match=r"driver/points/.*: a worker wrote this file, but the driver does not see it"
    ):
        check_written(dataset, [*here, *elsewhere])


def test_a_dataset_is_the_same_folder_to_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    answered = CliRunner().invoke(spark, ["query", "clients", "--dataset", "tables"])

    assert f"{tmp_path}/tables: no dataset: check the path" in answered.output

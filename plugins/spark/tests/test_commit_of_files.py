"""The folder of the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek_spark.cli.main import spark


def test_a_dataset_is_the_same_folder_to_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    answered = CliRunner().invoke(spark, ["query", "clients", "--dataset", "tables"])

    assert f"{tmp_path}/tables: no dataset: check the path" in answered.output

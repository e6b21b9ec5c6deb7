from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.main import run
from odradek.demo.pipeline import Pipeline, quota_line


def test_tables_are_kept_only_with_the_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["demo", "--keep", str(tmp_path)])

    assert status == 2
    assert "--keep needs --spark" in capsys.readouterr().err


def test_tables_that_exist_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("confluent_kafka")
    (tmp_path / "tables").mkdir()

    status = run(["demo", "--spark", "--keep", str(tmp_path)])

    assert status == 2
    assert f"{tmp_path}/tables exists; name another folder" in " ".join(capsys.readouterr().err.split())


def test_the_quota_is_named() -> None:
    assert quota_line() == "quota of client-id demo-producer: producer_byte_rate=15000 (it sends more)"


def test_kept_tables_are_in_the_users_folder(tmp_path: Path) -> None:
    kept, temporary = (Pipeline(tmp_path / "temporary", each, None) for each in (tmp_path / "mine", None))

    assert kept.command("query")[-2:] == ("--dataset", str(tmp_path / "mine" / "tables"))
    assert temporary.command("query")[-1] == str(tmp_path / "temporary" / "tables")

"""Erasure of a client or a principal: rows, files and history; the other rows stay, and the proof holds."""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from telemetry_rows import Told, gauge, ingest, ingest_batches

from odradek_spark.cli.jobs import listed
from odradek_spark.cli.main import spark as command
from odradek_spark.jobs.erase import run_erase
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.following import erased_ranges, news
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import BY_NAME, ERASURES, POINTS, PUSHES, ROLLUP_1H, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 9, 22, 12, tzinfo=UTC)


def pushed(at_s: float, client: int, client_id: str) -> Told:
    return gauge(Told(at_s, client=client, client_id=client_id), float(client))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "d"))
    first = [pushed(30, 1, "gone"), pushed(31, 2, "stays"), pushed(60, 1, "gone")]
    ingest_batches(
        made, [first, [pushed(90, 1, "gone"), Told(91, raw=b"\xff\xff")], [pushed(95, 2, "stays")]]
    )
    return made


def client_ids_on_disk(dataset: Dataset) -> set[str]:
    """The client ids in all files below the tables."""
    found: set[str] = set()
    for path in Path(dataset.root).rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            rows = pq.read_table(path, partitioning=None)
            found.update(rows["client_id"].to_pylist() if "client_id" in rows.column_names else ())
    return found


def test_a_client_is_gone_from_tables_and_files(dataset: Dataset) -> None:
    done = run_erase(dataset.root, "client_id", "gone", NOW)

    assert done == {"points": 3, "histograms": 0, "dead_letter": 1, "pushes": 3}
    assert listed(done) == "3 rows of points, 1 rows of dead_letter, 3 rows of pushes"
    assert client_ids_on_disk(dataset) == {"stays"}
    with closing(Reader(dataset.root)) as reader:
        left = reader.ask("SELECT client_id, count(*) AS n FROM points GROUP BY ALL").to_pylist()
        dead = reader.ask("SELECT count(*) AS n FROM dead_letter").to_pylist()
    assert (left, dead) == ([{"client_id": "stays", "n": 2}], [{"n": 0}])


def test_an_audit_row_says_what_was_erased(dataset: Dataset) -> None:
    run_erase(dataset.root, "client_id", "gone", NOW)

    (row,) = dataset.existing(ERASURES).to_pyarrow_table().to_pylist()
    assert (row["erased_ts"], row["erased"], row["date"]) == (NOW, "client_id", "2026-09-22")
    assert row["value_sha256"] == hashlib.sha256(b"gone").hexdigest()
    assert json.loads(row["rows"])["points"] == 3
    assert erased_ranges(dataset) == [(0, 0, 1), (0, 2, 5)]


def test_a_second_erasure_finds_nothing(dataset: Dataset) -> None:
    run_erase(dataset.root, "client_id", "gone", NOW)

    again = run_erase(dataset.root, "client_id", "gone", NOW)

    assert listed(again) == ""
    assert dataset.existing(ERASURES).to_pyarrow_table().num_rows == 1


def test_a_job_that_is_late_reads_the_rows_that_are_left(dataset: Dataset) -> None:
    dataset.create([ROLLUP_1H])
    app = "rollup:rollup_1h"
    dataset.commit_next(ROLLUP_1H, [], app, None, 0)

    run_erase(dataset.root, "client_id", "gone", NOW)

    found = news(dataset, POINTS, ROLLUP_1H, app)
    assert found is not None
    assert (found.spans, len(found.files)) == ([(0, 0, 6)], 2)
    names = [pq.read_table(each, partitioning=None) for each in found.files]
    assert {name for each in names for name in each["client_id"].to_pylist()} == {"stays"}


def test_files_that_were_compacted_are_erased_too(dataset: Dataset) -> None:
    from odradek_spark.jobs.compact import merged
    from odradek_tables.log import live

    old = live(dataset.existing(POINTS))
    dataset.exchange(POINTS, old, merged(dataset.root, POINTS, old), data_change=False)

    run_erase(dataset.root, "client_id", "gone", NOW)

    assert client_ids_on_disk(dataset) == {"stays"}
    assert dataset.existing(POINTS).to_pyarrow_table().num_rows == 2


def test_the_history_does_not_tell_the_client(dataset: Dataset) -> None:
    run_erase(dataset.root, "client_id", "gone", NOW)

    told = [path.read_text() for path in Path(dataset.root).rglob("*.json")]
    assert told
    assert not [text for text in told if "gone" in text]


def test_ingest_goes_on_beside_an_erasure(dataset: Dataset) -> None:
    more = [[pushed(100 + each, 2, "stays")] for each in range(10)]
    ingesting = threading.Thread(target=lambda: ingest_batches(dataset, more, 6))

    ingesting.start()
    run_erase(dataset.root, "client_id", "gone", NOW)
    ingesting.join()

    assert client_ids_on_disk(dataset) == {"stays"}
    assert dataset.existing(POINTS).to_pyarrow_table().num_rows == 12


def test_an_interrupted_erasure_is_repeated(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = Dataset.delete

    def killed(self: Dataset, table: Table, *arguments: Any) -> int:
        if table is PUSHES:
            raise KeyboardInterrupt
        return delete(self, table, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Dataset, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            run_erase(dataset.root, "client_id", "gone", NOW)
    run_erase(dataset.root, "client_id", "gone", NOW)

    assert client_ids_on_disk(dataset) == {"stays"}
    assert set(erased_ranges(dataset)) == {(0, 0, 1), (0, 2, 5), (0, 2, 4)}


def test_files_that_are_being_written_stay(dataset: Dataset) -> None:
    writing = write_files(dataset.root, POINTS, Decoder().decode([pushed(99, 3, "new").record(9)]).points)

    run_erase(dataset.root, "client_id", "gone", NOW)

    assert all(Path(f"{dataset.uri(POINTS)}/{each.path}").exists() for each in writing)


def test_a_principal_is_erased(dataset: Dataset) -> None:
    (principal,) = set(dataset.existing(PUSHES).to_pyarrow_table()["principal"].to_pylist())

    run_erase(dataset.root, "principal", "User:nobody", NOW)
    kept = dataset.existing(POINTS).to_pyarrow_table().num_rows
    run_erase(dataset.root, "principal", principal, NOW)

    assert (kept, dataset.existing(POINTS).to_pyarrow_table().num_rows) == (5, 0)
    assert client_ids_on_disk(dataset) == set()


@pytest.mark.parametrize("options", [(), ("--client-id", "a", "--principal", "b")])
def test_the_command_needs_one_of_both(dataset: Dataset, options: tuple[str, ...]) -> None:
    result = CliRunner().invoke(command, ["erase", "--dataset", dataset.root, *options])

    assert result.exit_code == 2
    assert "expected one of --client-id and --principal" in result.stderr


def test_the_command_erases(dataset: Dataset) -> None:
    result = CliRunner().invoke(command, ["erase", "--dataset", dataset.root, "--client-id", "gone"])

    assert (result.exit_code, result.stdout.startswith("erase: 3 rows of points")) == (0, True)
    assert set(BY_NAME) > {ERASURES.name}


@pytest.mark.spark
def test_the_proof_and_the_jobs_hold_after_an_erasure(spark: SparkSession, dataset: Dataset) -> None:
    from odradek_spark.jobs.inventory import run_inventory
    from odradek_spark.jobs.verify import run_verify

    run_inventory(spark, dataset.root)
    end = ingest(dataset, [pushed(120, 1, "gone"), pushed(121, 2, "stays")], 6)
    run_erase(dataset.root, "client_id", "gone", NOW)
    run_inventory(spark, dataset.root)

    report = run_verify(spark, dataset.root)

    assert (end, report.faults, report.pushes, report.batches) == (8, [], 3, 4)
    assert client_ids_on_disk(dataset) == {"stays"}

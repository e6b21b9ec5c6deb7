"""What the library ``deltalake`` does when several writers meet, and so which of its functions jobs use."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError
from telemetry_rows import Told, gauge, ingest, ingest_batches

from odradek_spark.jobs.compact import merged
from odradek_tables.dataset import Dataset
from odradek_tables.log import live
from odradek_tables.schemas import POINTS

HOUR_S = 3600
FIRST_HOUR = "date = '2026-09-22' AND hour = 0"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path / "dataset"))
    ingest_batches(made, [[gauge(Told(at), 1.0), gauge(Told(at, client=2), 2.0)] for at in (1, 2, HOUR_S)])
    return made


def rows(dataset: Dataset) -> int:
    return int(dataset.existing(POINTS).to_pyarrow_table().num_rows)


def test_two_optimizations_that_meet_write_each_row_twice(dataset: Dataset) -> None:
    """Once this fails, compaction can use them."""
    first, second = dataset.existing(POINTS), dataset.existing(POINTS)

    first.optimize.z_order(["client_instance_id"], partition_filters=[("hour", "=", "0")])
    second.optimize.z_order(["client_instance_id"], partition_filters=[("hour", "=", "0")])

    assert rows(dataset) == 6 + 4


def test_a_deletion_in_a_folder_goes_beside_ingest_in_another(dataset: Dataset) -> None:
    before = dataset.existing(POINTS)
    ingest(dataset, [gauge(Told(HOUR_S + 1), 1.0)], 6)

    done = before.delete(f"{FIRST_HOUR} AND value = 2.0")

    assert (done["num_deleted_rows"], rows(dataset)) == (2, 5)


def test_a_deletion_from_all_folders_fails_beside_ingest(dataset: Dataset) -> None:
    before = dataset.existing(POINTS)
    ingest(dataset, [gauge(Told(HOUR_S + 1), 1.0)], 6)

    with pytest.raises(CommitFailedError, match="a concurrent transactions added new data"):
        before.delete("value = 2.0")


def test_a_deletion_that_meets_compaction_starts_again(dataset: Dataset) -> None:
    before = dataset.existing(POINTS)
    old = [each for each in live(before) if each.partition["hour"] == "0"]

    assert dataset.exchange(POINTS, old, merged(dataset.root, POINTS, old), data_change=False)
    with pytest.raises(CommitFailedError):
        before.delete(f"{FIRST_HOUR} AND value = 2.0")

    assert dataset.delete(POINTS, f"{FIRST_HOUR} AND value = 2.0", {}) == 2
    assert rows(dataset) == 4


def test_a_deletion_keeps_statistics_and_transactions(dataset: Dataset) -> None:
    before = dataset.existing(POINTS)
    number = before.transaction_version("source:__client_telemetry:0")

    dataset.delete(POINTS, f"{FIRST_HOUR} AND value = 2.0", {"odradekJob": "erase"})

    after = dataset.existing(POINTS)
    assert after.transaction_version("source:__client_telemetry:0") == number == 6
    assert all(each.recv_min is not None and each.rows for each in live(after))
    assert after.history(1)[0]["odradekJob"] == "erase"
    assert {each.path.split("/")[0] for each in live(after)} == {"date=2026-09-22"}

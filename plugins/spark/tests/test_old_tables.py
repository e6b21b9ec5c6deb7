"""Tables of older versions, which have a column more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from odradek_spark.jobs.episodes import key, rewritten, rows_of
from odradek_spark.jobs.islands import OPEN
from odradek_tables.dataset import Dataset
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.schemas import ANOMALIES

STARTED = datetime(2026, 11, 29, 12, tzinfo=UTC)
ROW = {
    "rule": "behind",
    "client_instance_id": "AQ",
    "name": "lag",
    "started_ts": STARTED,
    "last_ts": STARTED,
    "state": OPEN,
    "worst": 7.0,
    "date": "2026-11-29",
}


def test_anomalies_that_were_delivered_are_read_and_written_on(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    older = replace(ANOMALIES, schema=ANOMALIES.schema.insert(0, pa.field("delivered", pa.string())))
    row = ROW | {"delivered": "webhook=opened"}
    files = write_files(dataset.root, older, pa.Table.from_pylist([row], schema=older.schema))
    dataset.create([older])
    assert dataset.commit_next(older, files, "detect", None, 1)

    found = live(dataset.existing(ANOMALIES))
    (before,) = rows_of(dataset, found)
    is_written = rewritten(dataset, [before | {"state": "closed"}], found, {})
    (after,) = rows_of(dataset, live(dataset.existing(ANOMALIES)))

    assert is_written
    assert "delivered" not in before
    assert (key(after), after["state"], after["worst"]) == (key(before), "closed", 7.0)
    assert DeltaTable(str(tmp_path / "anomalies")).to_pyarrow_table().num_rows == 1

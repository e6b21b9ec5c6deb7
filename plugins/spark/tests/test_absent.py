"""The records of its range that a replay task finds missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from telemetry_rows import Told, gauge, ingest

from odradek_spark.jobs.replay import Absent
from odradek_spark.source.offsets import OffsetRange
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.schemas import POINTS

PUSHES = [gauge(gauge(Told(30.0 * number), 1.0), 2.0, "n") for number in range(6)]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """All of partition 1, and partition 0 before offset 4: at 1 a point is lost, and 3 is unreadable."""
    made = Dataset(str(tmp_path))
    ingest(made, PUSHES, 0, partition=1)
    ingest(made, [*PUSHES[:3], Told(90.0, raw=b"\xff")], 0)
    rows = made.existing(POINTS).to_pyarrow_table()
    lost = (pc.field("src_partition") == 0) & (pc.field("src_offset") == 1) & (pc.field("src_idx") == 1)
    kept = write_files(made.root, POINTS, rows.filter(~lost).cast(POINTS.schema))
    assert made.exchange(POINTS, live(made.existing(POINTS)), kept, data_change=True)
    return made


def test_existing_rows_of_a_range_are_left_out(dataset: Dataset) -> None:
    absent = Absent(dataset, OffsetRange(0, 1, 6), {})
    decoded = Decoder().decode([PUSHES[offset].record(offset) for offset in range(1, 6)])

    found = {table: absent(table, rows) for table, rows in decoded.batches()}

    keys = [(row["src_offset"], row["src_idx"]) for row in found["points"].to_pylist()]
    assert keys == [(1, 1), (3, 0), (3, 1), (4, 0), (4, 1), (5, 0), (5, 1)]
    assert found["pushes"]["src_offset"].to_pylist() == [3, 4, 5]


@pytest.mark.parametrize("offset", [1, 3])
def test_neither_a_push_nor_a_dead_letter_becomes_a_dead_letter_again(dataset: Dataset, offset: int) -> None:
    absent = Absent(dataset, OffsetRange(0, 0, 6), {})
    dead = Decoder().decode([Told(0.0, raw=b"\xff").record(each) for each in (offset, 4)]).dead_letter

    found = absent("dead_letter", dead)

    assert found["src_offset"].to_pylist() == [4]


def test_removed_days_do_not_come_back(dataset: Dataset) -> None:
    absent = Absent(dataset, OffsetRange(0, 4, 6), {"points": "2026-09-23", "pushes": "2026-09-22"})
    decoded = Decoder().decode([PUSHES[offset].record(offset) for offset in (4, 5)])

    found = {table: absent(table, rows).num_rows for table, rows in decoded.batches()}

    assert found == {"points": 0, "histograms": 0, "dead_letter": 0, "pushes": 2}

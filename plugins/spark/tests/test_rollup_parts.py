"""The sums computed by the workers, without Spark: a part compared with plain arithmetic, and the files of a
part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from telemetry_rows import LATENCY, SENT, Told, Value, gauge, ingest

from odradek_spark.jobs import rollup_parts
from odradek_spark.jobs.rollup_parts import Part, opened_part, planned, sums, with_sketches
from odradek_spark.jobs.sketch import sketch
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.following import news
from odradek_spark.tables.levels import BY_CLIENT, EVERYTHING, Levels
from odradek_spark.tables.log import AddedFile, LiveFile, live
from odradek_spark.tables.schemas import POINTS, PUSHES, ROLLUP_1H, ROLLUP_5M, Table

START, S = datetime(2026, 9, 22, tzinfo=UTC), timedelta(seconds=1)
VALUES = st.one_of(st.floats(width=32), st.integers(-(2**63), 2**63 - 1), st.none())


def one_part(dataset: Dataset) -> Part:
    """All rows of a dataset."""
    found = news(dataset, POINTS, ROLLUP_5M, "nobody")
    assert found is not None
    (part,) = planned(dataset.root, found.files, live(dataset.existing(PUSHES)))
    return part


def added_up(root: str, table: Table, found: Part) -> pa.Table:
    with opened_part(root, found) as opened:
        rows = opened.sql(sums(table, Levels((EVERYTHING,), BY_CLIENT))).to_arrow_table()
    return with_sketches(table, rows)


def rows_of(dataset: Dataset, table: Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = added_up(dataset.root, table, one_part(dataset)).to_pylist()
    return {
        (row["bucket"], row["name"], row["client_id"], row.get("client_instance_id")): row for row in rows
    }


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    told=st.lists(
        st.tuples(st.integers(0, 9_000), st.integers(1, 3), st.sampled_from((LATENCY, SENT)), VALUES),
        min_size=1,
        max_size=12,
        unique_by=lambda each: (each[0], each[1]),
    )
)
def test_a_part_is_the_sum_of_its_points(
    tmp_path_factory: pytest.TempPathFactory, told: list[tuple[int, int, str, float | int | None]]
) -> None:
    dataset = Dataset(str(tmp_path_factory.mktemp("dataset")))
    told = sorted(told)
    pushes = [Told(at_s, (Value(name, value),), client, "app") for at_s, client, name, value in told]
    ingest(dataset, pushes, 0)
    expected: dict[tuple[Any, ...], list[tuple[int, float | int]]] = defaultdict(list)
    for at_s, _, name, value in told:
        if value is not None:
            expected[START + timedelta(seconds=at_s // 300 * 300), name, "app", None].append((at_s, value))

    found = rows_of(dataset, ROLLUP_5M)

    assert found.keys() == expected.keys()
    for key, row in found.items():
        finite = [(at_s, float(value)) for at_s, value in expected[key] if math.isfinite(value)]
        values = [value for _, value in finite]
        whole = [value for _, value in expected[key] if isinstance(value, int)]
        latest = max(finite, default=None)
        assert (row["n"], row["not_finite"]) == (len(finite), len(expected[key]) - len(finite))
        assert (row["min"], row["max"]) == (min(values, default=None), max(values, default=None))
        assert row["last"] == (latest[1] if latest else None)
        assert row["last_ts"] == (START + timedelta(seconds=latest[0]) if latest else None)
        assert row["sum_int"] == (sum(whole) if whole else None)
        if values:
            exact = float(sum(map(Fraction, values)))
            assert math.isclose(row["sum"], exact, rel_tol=1e-9, abs_tol=1e-9 * max(map(abs, values)))
        assert row["date"] == f"{key[0]:%Y-%m-%d}"


def test_an_hour_keeps_instances_separate(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    ingest(dataset, [gauge(Told(10.0 * client, client=client), float(client)) for client in (1, 2)], 0)

    hours, minutes = rows_of(dataset, ROLLUP_1H), rows_of(dataset, ROLLUP_5M)

    assert sorted(row["sum"] for row in hours.values()) == [1.0, 2.0]
    assert [row["sum"] for row in minutes.values()] == [3.0]


def test_a_repeated_push_is_recognized_from_an_earlier_part(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    first = gauge(Told(10.0), 2.0)
    end = ingest(dataset, [first], 0)
    ingest(dataset, [Told(40.0, raw=first.payload()), gauge(Told(41.0, client=2), 5.0)], end)
    points = [
        file for file in live(dataset.existing(POINTS)) if file.recv_min and file.recv_min > START + 20 * S
    ]
    part = planned(dataset.root, [as_added(each) for each in points], live(dataset.existing(PUSHES)))

    (row,) = added_up(dataset.root, ROLLUP_5M, part[0]).to_pylist()

    assert (row["n"], row["sum"]) == (1, 5.0)


def as_added(file: LiveFile) -> AddedFile:
    return AddedFile(file.path, file.rows, file.partition, file.recv_min, file.recv_max)


def test_parts_are_in_time_order_and_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollup_parts, "TASK_ROWS", 100)
    points = [
        AddedFile(f"p{number}", 40, {}, START + number * 60 * S, START + (number + 1) * 60 * S)
        for number in (3, 0, 2, 1)
    ]
    file = LiveFile("u", 1, 1, {})
    pushes = [
        replace(file, path="old", recv_min=START - 9_000 * S, recv_max=START - 7_201 * S),
        replace(file, path="before", recv_min=START - 9_000 * S, recv_max=START - 10 * S),
        replace(file, path="later", recv_min=START + 130 * S, recv_max=START + 200 * S),
        replace(file, path="unknown"),
    ]

    first, second = planned("/d", points, pushes)

    assert first.points == ("/d/points/p0", "/d/points/p1")
    assert second.points == ("/d/points/p2", "/d/points/p3")
    assert first.pushes == ("/d/pushes/before", "/d/pushes/unknown")
    assert second.pushes == ("/d/pushes/before", "/d/pushes/later", "/d/pushes/unknown")
    assert datetime.fromisoformat(first.since) == START


def test_no_files_are_no_part() -> None:
    found = planned("/d", [], [])

    assert found == []


def test_a_sketch_is_at_most_as_large_as_its_registers() -> None:
    many = sketch(f"instance-{number}" for number in range(100_000))

    assert 1024 <= len(many) < 1200
    assert len(sketch(["one"])) < 32

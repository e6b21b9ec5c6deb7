"""A destination that gets cumulative values."""

from __future__ import annotations

import sqlite3
from collections.abc import Coroutine, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import ConfigError, Origin, PluginConfig, Reject, Retry, TelemetryRecord
from odradek.temporality import (
    BadState,
    CumulativeForwarder,
    Limits,
    StateFile,
    TotalsSettings,
    read_totals,
)
from odradek.temporality.cumulative_forwarder import copy_of
from support.coroutines import ran
from support.delta_clients import TOPIC, B, Scene, d, points_of


class Destination:
    """Keeps the totals of each batch; fails as its script says."""

    def __init__(self) -> None:
        self.batches: list[list[float]] = []
        self.script: list[Exception] = []
        self.is_open = False

    async def start(self) -> None:
        self.is_open = True

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        found = [points_of(MetricsData.FromString(record.payload.data)) for record in batch]
        self.batches.append([point.as_double for points in found for point in points])
        if self.script:
            error = self.script.pop(0)
            if isinstance(error, Retry):
                raise Retry(str(error), 7.0, batch[:1])
            raise Reject(str(error), batch[:1], batch[1:])

    async def close(self) -> None:
        self.is_open = False


def failed(work: Coroutine[Any, Any, None]) -> Any:
    """The exception of a coroutine that never waits."""
    with pytest.raises((Retry, Reject)) as caught:
        work.send(None)
    return caught.value


def delta(
    value: float, offset: int, instance: bytes = b"A" * 16, data: bytes | None = None
) -> TelemetryRecord:
    record = Scene().record(d(value, 60 * offset, 60 * offset + 60), instance=instance, data=data)
    record.position = Origin(TOPIC, 0, offset)
    return record


def opened(path: Path) -> tuple[CumulativeForwarder, Destination]:
    destination = Destination()
    forwarder = CumulativeForwarder(destination, TotalsSettings(file=path))
    ran(forwarder.start())
    return forwarder, destination


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "totals.db"


def test_a_batch_is_delivered_with_totals(path: Path) -> None:
    forwarder, destination = opened(path)

    ran(forwarder.deliver([delta(5.0, 0), delta(3.0, 1), delta(1.0, 2, B)]))
    ran(forwarder.deliver([delta(2.0, 3)]))
    ran(forwarder.close())

    assert destination.batches == [[5, 8, 1], [10]]
    assert not destination.is_open


def test_a_batch_that_is_delivered_again_is_added_once(path: Path) -> None:
    forwarder, destination = opened(path)
    destination.script = [Retry("down")]
    batch = [delta(5.0, 0), delta(3.0, 1)]

    error = failed(forwarder.deliver(batch))
    ran(forwarder.deliver(batch[1:]))
    ran(forwarder.close())

    assert (error.after_s, error.delivered) == (7.0, batch[:1])
    assert destination.batches == [[5, 8], [8]]


def test_records_without_positions_are_added_once_while_the_host_runs(path: Path) -> None:
    forwarder, destination = opened(path)
    destination.script = [Retry("down"), Retry("down")]
    batch = [delta(5.0, 0), delta(3.0, 1), delta(1.0, 2)]
    for record in batch:
        record.position = None

    failed(forwarder.deliver(batch))
    failed(forwarder.deliver(batch[:1]))
    ran(forwarder.deliver(batch[1:]))
    ran(forwarder.deliver([delta(2.0, 3)]))
    ran(forwarder.close())

    assert destination.batches == [[5, 8, 9], [9], [9, 9], [11]]


def test_a_crash_after_the_commit_loses_and_doubles_nothing(path: Path) -> None:
    crashed, destination = opened(path)
    destination.script = [Retry("killed")]
    failed(crashed.deliver([delta(5.0, 0)]))
    assert crashed.store is not None
    crashed.store.close()

    again, destination = opened(path)
    ran(again.deliver([delta(5.0, 0), delta(2.0, 1)]))
    ran(again.close())

    assert destination.batches == [[5, 7]]


def test_refused_records_are_named(path: Path) -> None:
    forwarder, destination = opened(path)
    destination.script = [Reject("too large")]
    batch = [delta(5.0, 0), delta(3.0, 1)]

    error = failed(forwarder.deliver(batch))
    ran(forwarder.close())

    assert (error.records, error.delivered) == (batch[:1], batch[1:])


def test_a_record_that_is_not_otlp_is_rejected_and_the_others_are_delivered(path: Path) -> None:
    forwarder, destination = opened(path)
    batch = [delta(5.0, 0), delta(0.0, 1, data=b"\xff\xff"), delta(3.0, 2)]

    error = failed(forwarder.deliver(batch))
    ran(forwarder.close())

    assert (error.records, error.delivered) == ([batch[1]], [batch[0], batch[2]])
    assert destination.batches == [[5, 8]]


def test_totals_that_cannot_be_stored_are_not_delivered(path: Path) -> None:
    forwarder, destination = opened(path)
    ran(forwarder.deliver([delta(5.0, 0)]))
    assert isinstance(forwarder.store, StateFile)
    forwarder.store.connection.execute("pragma query_only = on")

    error = failed(forwarder.deliver([delta(3.0, 1)]))
    forwarder.store.connection.execute("pragma query_only = off")
    ran(forwarder.deliver([delta(3.0, 1)]))
    ran(forwarder.close())

    assert "cannot be stored" in str(error)
    assert destination.batches == [[5], [8]]


def test_a_damaged_state_is_told_with_what_to_do(path: Path) -> None:
    forwarder, _ = opened(path)
    ran(forwarder.deliver([delta(5.0, 0)]))
    ran(forwarder.close())
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("update client set state = x'09'")
    forwarder, destination = opened(path)

    error = failed(forwarder.deliver([delta(3.0, 1)]))
    ran(forwarder.close())

    assert isinstance(error, Retry)
    assert f"`odradek totals rebuild {path}`" in str(error)
    assert destination.batches == []


def test_records_that_are_gone_are_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    forwarder, _ = opened(path)
    ran(forwarder.deliver([delta(5.0, 0)]))

    ran(forwarder.deliver([delta(5.0, 22)]))
    ran(forwarder.close())

    assert [record.__dict__["records"] for record in caplog.records] == [21]


def test_points_that_are_left_out_are_logged_once_a_minute(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    forwarder, _ = opened(path)

    for offset in range(3):
        ran(forwarder.deliver([delta(-1.0, offset)]))
    ran(forwarder.close())

    assert [record.__dict__["reasons"] for record in caplog.records] == [{"negative": 1}]


def test_a_record_with_a_wrong_time_forgets_no_other_client(path: Path) -> None:
    forwarder, destination = opened(path)
    ran(forwarder.deliver([delta(5.0, 0)]))
    late = delta(1.0, 2_000_000, B)
    late.position = Origin(TOPIC, 0, 1)
    ran(forwarder.deliver([late]))

    ran(forwarder.deliver([delta(3.0, 2)]))
    ran(forwarder.close())

    assert destination.batches == [[5], [1], [8]]


def test_a_goodbye_in_a_partition_that_is_read_later_is_not_forgotten_at_once(path: Path) -> None:
    forwarder, _ = opened(path)
    for number in range(20):
        early, late = (
            Scene().record(
                d(1.0, 0, 60),
                at=second + number,
                instance=instance,
                terminating=instance == B and number == 19,
            )
            for second, instance in ((0, B), (3_000, b"A" * 16))
        )
        early.position, late.position = Origin(TOPIC, 0, number), Origin(TOPIC, 1, number)
        ran(forwarder.deliver([early, late]))

    assert forwarder.engines[0].clients.states.keys() == {b"A" * 16, B}


def test_a_file_of_another_program_stops_the_start(path: Path) -> None:
    path.write_bytes(b"junk" * 1000)

    with pytest.raises(BadState):
        opened(path)


def test_the_default_are_delta_values() -> None:
    assert read_totals(PluginConfig("plugins.x", {})) is None


def test_all_keys_are_read(path: Path) -> None:
    config = PluginConfig(
        "plugins.x",
        {
            "temporality": "cumulative",
            "totals.file": str(path),
            "totals.max.series": 10,
            "totals.max.client.series": 5,
            "totals.max.bytes": 2 << 20,
            "totals.retain.ms": 400_000,
            "totals.ignored.attributes": ["team"],
        },
    )

    settings = read_totals(config)
    config.finish()

    limits = Limits(max_streams=10, max_client_streams=5, max_bytes=2 << 20, retain_ms=400_000)
    key = "plugins.x.totals.file"
    ignored = ("team", "labels_missing")
    assert settings == TotalsSettings(file=path, limits=limits, ignored_attributes=ignored, file_key=key)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"temporality": "rate"}, "plugins.x.temporality: expected one of delta, cumulative"),
        ({"temporality": "cumulative", "totals.file": "f", "totals.topic": "t"}, "only one of"),
        ({"temporality": "cumulative", "totals.file": "/no/such/folder/f"}, "an existing folder"),
        ({"totals.file": "f"}, 'plugins.x.totals.file: expected with temporality = "cumulative" only'),
    ],
)
def test_a_bad_table_is_refused(table: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_totals(PluginConfig("plugins.x", table))


def test_a_cumulative_copy_differs_in_nothing_but_its_data() -> None:
    record = delta(5.0, 0)
    record.source, record.origin, record.codec, record.subscription_id = "s", Origin("o", 1, 2), 3, 4
    record.observed, record.labeled = True, False

    expected = asdict(record)

    copy = copy_of(record, b"totals")

    assert asdict(copy) == expected | {"payload": expected["payload"] | {"data": b"totals"}}


def test_the_clients_of_one_record_are_each_added_once(tmp_path: Path) -> None:
    settings = TotalsSettings(file=tmp_path / "totals.db")
    destination = Destination()
    forwarder = CumulativeForwarder(destination, settings)
    ran(forwarder.start())
    message = [delta(5.0, 0), delta(7.0, 0, B)]

    ran(forwarder.deliver(message))
    ran(forwarder.deliver(message))
    ran(forwarder.close())
    ran(forwarder.start())
    ran(forwarder.deliver([*message, delta(1.0, 1)]))

    assert destination.batches == [[5.0, 7.0], [5.0, 7.0], [5.0, 7.0, 6.0]]
    ran(forwarder.close())

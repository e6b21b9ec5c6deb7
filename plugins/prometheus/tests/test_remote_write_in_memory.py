"""Remote write to a receiver that takes everything: several partitions, and what is not sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.endpoints.http_answer import HttpAnswer
from odradek.endpoints.http_client import HttpTarget
from odradek.plugin import Origin, PluginConfig, TelemetryRecord
from odradek_prometheus.exposition import Exposition, ExpositionSettings
from odradek_prometheus.remote_write import remote_write_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from odradek_prometheus.remote_write.remote_write_settings import read_remote_write
from support.delta_clients import TOPIC, A, B, Scene, d, ms, nanos

URL = "http://receiver:1/write"


class TakesAll:
    """A client of a receiver that stores everything."""

    target = HttpTarget(url=URL, secure=False)

    async def open(self) -> None:
        """Nothing to open."""

    async def refresh(self) -> None:
        """No certificates."""

    async def close(self) -> None:
        """Nothing to close."""

    async def post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        return HttpAnswer(200, {"X-Prometheus-Remote-Write-Samples-Written": "999"}, "text/plain", b"")


def record(partition: int, offset: int, second: int, instance: bytes) -> TelemetryRecord:
    found = Scene().record(d(1.0, second - 60, second), at=second, instance=instance)
    found.position = Origin(TOPIC, partition, offset)
    return found


@pytest.fixture
def forwarder(tmp_path: Path) -> RemoteWriteForwarder:
    table = {"remote_write.url": URL, "remote_write.totals.file": str(tmp_path / "totals.db")}
    settings = read_remote_write(PluginConfig("plugins.prometheus", table))
    assert settings is not None
    found = RemoteWriteForwarder(settings, Exposition(ExpositionSettings()), "test/1")
    found.client = found.receiver.client = TakesAll()  # type: ignore[assignment]
    return found


def test_a_client_of_a_partition_that_is_read_later_is_not_silent(
    forwarder: RemoteWriteForwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monotonic_s = 1_000.0
    monkeypatch.setattr("time.monotonic", lambda: monotonic_s)
    times: list[int] = []

    async def live() -> None:
        nonlocal monotonic_s
        await forwarder.start()
        times.append(forwarder.time_of_log_ms(monotonic_s, ms(9_000)))
        monotonic_s += remote_write_forwarder.QUIET_S + 1
        await forwarder.deliver([record(0, 0, 3_000, A), record(1, 0, 60, B), record(0, 1, 3_060, A)])
        times.append(forwarder.time_of_log_ms(monotonic_s, ms(9_000)))
        forwarder.look(times[-1])
        assert len(forwarder.exposition.clients()) == 2
        monotonic_s += remote_write_forwarder.QUIET_S
        await forwarder.deliver([record(0, 2, 3_120, A)])
        monotonic_s += 1
        times.append(forwarder.time_of_log_ms(monotonic_s, ms(9_000)))
        monotonic_s += remote_write_forwarder.QUIET_S
        times.append(forwarder.time_of_log_ms(monotonic_s, ms(9_000)))
        await forwarder.close()

    asyncio.run(live())

    assert times == [0, ms(60), ms(3_120), ms(9_000)]


def test_a_histogram_that_is_too_wide_is_counted_and_told(
    forwarder: RemoteWriteForwarder, caplog: pytest.LogCaptureFixture
) -> None:
    metric = Metric(name="e")
    metric.exponential_histogram.aggregation_temporality = 1  # type: ignore[assignment]
    metric.exponential_histogram.data_points.add(
        start_time_unix_nano=nanos(0), time_unix_nano=nanos(60), scale=-5, count=1, zero_count=1
    )
    pushed = Scene().record(metric, d(1.0, 0, 60))
    pushed.position = Origin(TOPIC, 0, 0)

    async def live() -> None:
        await forwarder.start()
        await forwarder.deliver([pushed])
        await forwarder.close()

    asyncio.run(live())

    assert forwarder.refused_points == {"too_wide": 1}
    assert [record.__dict__["reasons"] for record in caplog.records] == [{"too_wide": 1}]

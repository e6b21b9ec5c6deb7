"""Remote write to a real Prometheus: its answers, its totals, and sudden deaths of the sender."""

from __future__ import annotations

import asyncio
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from contrib.capture.ports import free_ports

from integration.remote_write_program import CLIENTS, forwarder_to, total
from odradek.endpoints import Credentials
from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek.plugin import Origin, TelemetryRecord
from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.remote_write.answers import Reason
from odradek_prometheus.remote_write.receiver import Receiver
from odradek_prometheus.remote_write.sample import NativeHistogram, Sample
from support.child_process import same_imports
from support.delta_clients import EPOCH_S, Scene, d
from support.prometheus_server import PrometheusServer, prometheus_server

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]
TESTS = Path(__file__).parents[2]
SENDS = Family("sends_total", "sends.total", FamilyType.COUNTER, "", "Sends.")
SIZES = Family("sizes", "sizes", FamilyType.EXPONENTIAL, "", "")
HOUR_MS = 3_600_000
LIVES = 20
RECORDS = 600
LONGEST_S = 0.25


@pytest.fixture(scope="module")
def prometheus(
    prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    """A server that takes remote write and start times."""

    folder = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yml"
    config.touch()
    (port,) = free_ports(1)
    options = ("--web.enable-remote-write-receiver", "--enable-feature=created-timestamp-zero-ingestion")
    with prometheus_server(prometheus_program, config, port, folder, *options) as server:
        yield server


def url_of(prometheus: PrometheusServer) -> str:
    return f"{prometheus.url}/api/v1/write"


def sample(series: str, time_ms: int, value: float = 1.0, *more: tuple[str, str]) -> Sample:
    labels = (*more, ("series", series))
    return Sample("sends_total", labels, SENDS, time_ms, struct.pack("<d", value))


def rejected(prometheus: PrometheusServer, protocol: str, *batches: Sequence[Sample]) -> list[dict[str, int]]:
    """The reasons for samples of each batch that were not stored."""

    async def write() -> list[dict[str, int]]:
        client = HttpClient(HttpTarget(url=url_of(prometheus), secure=False, timeout_ms=60_000), {})
        receiver = Receiver(client, Credentials({}, {}), protocol)
        await client.open()
        found = []
        try:
            for batch in batches:
                receiver.counts.rejected.clear()
                await receiver.write(batch)
                found.append(dict(receiver.counts.rejected))
        finally:
            await client.close()
        assert receiver.is_v2 is (protocol == "2.0")
        return found

    return asyncio.run(write())


@pytest.mark.parametrize("protocol", ["2.0", "1.0"])
def test_the_answers_of_prometheus(prometheus: PrometheusServer, protocol: str) -> None:
    now_ms = int(time.time() * 1000)
    a, b = f"a-{protocol}", f"b-{protocol}"

    found = rejected(
        prometheus,
        protocol,
        [sample(a, now_ms)],
        [sample(a, now_ms)],
        [sample(a, now_ms, 2.0)],
        [sample(a, now_ms - 1)],
        [sample(a, now_ms + 1, 7.0), sample(b, now_ms - 3 * HOUR_MS)],
        [sample(a, now_ms + 700_000)],
        [sample(b, now_ms, 1.0, ("A", "1"), ("a", "2"))],
    )

    assert found == [
        {},
        {},
        {Reason.DUPLICATE: 1},
        {Reason.OUT_OF_ORDER: 1},
        {Reason.TOO_OLD: 1},
        {Reason.TOO_FAR_AHEAD: 1},
        {},
    ]
    values = prometheus.query(f'sends_total{{series="{a}"}}', at_s=now_ms / 1000 + 0.001)
    assert [value for _, value in values] == [7.0]


def test_a_label_twice_is_a_bug_that_is_told(
    prometheus: PrometheusServer, caplog: pytest.LogCaptureFixture
) -> None:
    twice = sample("c", int(time.time() * 1000), 1.0, ("same", "1"), ("same", "2"))

    assert rejected(prometheus, "2.0", [twice]) == [{Reason.LABELS: 1}]
    assert [each.levelname for each in caplog.records] == ["ERROR"]


def test_a_native_histogram(prometheus: PrometheusServer) -> None:
    now_ms = int(time.time() * 1000)
    histogram = NativeHistogram(7, 21.0, 0, 0.001, 1, positive=[(1, [2, 3])], negative=[(0, [1])])
    native = Sample("sizes", (), SIZES, now_ms, b"", now_ms - 60_000, histogram=histogram)

    assert rejected(prometheus, "2.0", [native]) == [{}]
    ((_, count),) = prometheus.query("histogram_count(sizes)")
    ((_, upper),) = prometheus.query("histogram_quantile(1, sizes)")
    assert (count, upper) == (7.0, 4.0)


def record_of(
    client_id: str, value: float, start_s: float, time_s: float, offset: int, **facts: bool
) -> TelemetryRecord:
    labels = {"client_id": client_id}
    record = Scene().record(
        d(value, start_s - EPOCH_S, time_s - EPOCH_S),
        at=time_s - EPOCH_S,
        instance=client_id.encode().ljust(16),
        labels=labels,
        **facts,  # type: ignore[arg-type]
    )
    record.context.client_id = client_id
    record.position = Origin("topic", 0, offset)
    return record


def delivered(prometheus: PrometheusServer, folder: Path, *records: TelemetryRecord) -> None:
    async def deliver() -> None:
        forwarder = forwarder_to(url_of(prometheus), folder)
        await forwarder.start()
        try:
            await forwarder.deliver(records)
        finally:
            await forwarder.close()
        assert forwarder.receiver.is_v2
        assert forwarder.receiver.counts.rejected == {}

    asyncio.run(deliver())


def test_a_client_that_pushed_once_has_its_whole_increase(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    now_s = int(time.time())

    delivered(prometheus, tmp_path, record_of("once", 5.0, now_s - 60, now_s - 1, 0))

    ((labels, increase),) = prometheus.query('increase(c_total{client_id="once"}[10m])', at_s=now_s - 1)
    assert increase == 5.0
    assert labels["job"] == "kafka-clients"
    assert labels["client_software_name"] == "unknown"


def test_the_last_increment_of_a_client_that_says_goodbye(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    now_s = int(time.time())

    delivered(
        prometheus,
        tmp_path,
        record_of("bye", 5.0, now_s - 60, now_s - 30, 0),
        record_of("bye", 2.0, now_s - 30, now_s - 10, 1, terminating=True),
    )

    ((_, last),) = prometheus.query('c_total{client_id="bye"}', at_s=now_s - 10)
    assert last == 7.0
    assert prometheus.query('{client_id="bye"}', at_s=now_s) == []


def lived(prometheus: PrometheusServer, folder: Path, first_s: float, life_s: float) -> int:
    """The exit status of a sender after its life."""
    environment = same_imports()
    command = [sys.executable, "-m", "integration.remote_write_program", url_of(prometheus), str(folder)]
    command += [str(RECORDS), str(first_s), str(life_s)]
    return subprocess.run(command, cwd=TESTS, env=environment, timeout=100, check=False).returncode


def test_totals_after_sudden_deaths_are_those_of_the_clients(
    prometheus: PrometheusServer, tmp_path: Path
) -> None:
    chance = random.Random(11)
    first_s = time.time() - RECORDS

    ends = [lived(prometheus, tmp_path, first_s, chance.uniform(0.005, LONGEST_S)) for _ in range(LIVES)]
    last = lived(prometheus, tmp_path, first_s, 0)

    assert (ends[0], last) == (-signal.SIGALRM, 0)
    found = prometheus.query('c_total{client_id=~"client-.*"}', at_s=first_s + RECORDS)
    assert {labels["client_id"]: value for labels, value in found} == {
        f"client-{client}": total(client, RECORDS) for client in range(CLIENTS)
    }
    went_back = prometheus.query(
        f'resets(c_total{{client_id=~"client-.*"}}[{RECORDS + 60}s])', at_s=first_s + RECORDS
    )
    assert [value for _, value in went_back] == [0.0] * CLIENTS

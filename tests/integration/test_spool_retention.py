"""Retention of the telemetry topic removes records that a forwarder has not delivered: they are counted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.plugin import TelemetryRecord
from odradek.wire.config_resource import ResourceType
from support.hosts import ThreadedHost
from support.spooling import TOPIC, FarSide, admin_of, down, hosting, names, payload, until
from support.wire_client import WireClient

SOON = ("log.retention.check.interval.ms=20", "telemetry.linger.ms=0")
LARGE_BYTES = 48_000
"""A payload of this many bytes, which compress to about half."""


def spool_of(host: ThreadedHost) -> TelemetrySpool:
    assert host.host.spool is not None
    return host.host.spool


def gone(host: ThreadedHost, pushes: int) -> bool:
    """Whether every record was delivered or has expired."""
    stats = host.host.forwarders[0].stats()
    return stats.queued + stats.in_flight == 0 and stats.offered == pushes


def test_records_older_than_retention_are_counted_as_expired(tmp_path: Path) -> None:
    far = FarSide(behavior=down)
    with hosting(tmp_path, *SOON, "telemetry.retention.ms=300", far=far) as host, staying(host) as client:
        partition = spool_of(host).topic.partitions[0]
        push(client, range(5))
        until(host, lambda: far.calls > 0)

        push(client, range(5, 400))
        until(host, lambda: partition.log_start_offset == 400)
        with admin_of(host) as admin:
            change = ConfigChange("retention.ms", "3600000")
            admin.incremental_alter_configs({ConfigResource(ResourceType.TOPIC, TOPIC): [change]})
        far.behavior = lambda batch: None
        push(client, range(400, 403))
        until(host, lambda: far.names[-3:] == names(range(400, 403)))
        until(host, lambda: gone(host, 403))
        stats = host.host.forwarders[0].stats()

    assert stats.dropped == {"expired": 403 - len(far.taken)}
    assert stats.dropped["expired"] > 0
    assert far.names == sorted(far.names, key=number_of)


def test_segments_beyond_retention_bytes_are_counted_as_expired(tmp_path: Path) -> None:
    far = FarSide(behavior=down)
    settings = ("telemetry.retention.bytes=2000000", "telemetry.max.decompressed.bytes=65536")
    with hosting(tmp_path, *SOON, *settings, far=far) as host, staying(host) as client:
        partition = spool_of(host).topic.partitions[0]
        codes = push_large(client, range(250))
        until(host, lambda: partition.log_start_offset > 0 and partition.size_bytes < 4_000_000)

        far.behavior = lambda batch: None
        until(host, lambda: gone(host, 250))
        kept_from = partition.log_start_offset
        stats = host.host.forwarders[0].stats()

    assert codes == [0] * 250
    assert kept_from > 0
    assert stats.dropped == {"expired": 250 - len(far.taken)}
    assert offsets_of(far.taken)[-1] == 249
    assert set(range(kept_from, 250)) <= set(offsets_of(far.taken))


@contextmanager
def staying(host: ThreadedHost) -> Iterator[WireClient]:
    """A client that closes after everything was counted: a client that has closed has one more record."""
    with WireClient(host.address) as client:
        client.introduce()
        yield client


def push(client: WireClient, numbers: range) -> list[int]:
    return [client.push(payload(number)) for number in numbers]


def push_large(client: WireClient, numbers: range) -> list[int]:
    chance = random.Random(0)
    return [client.push(payload(number, chance.randbytes(LARGE_BYTES // 2).hex())) for number in numbers]


def offsets_of(taken: list[TelemetryRecord]) -> list[int]:
    return [number_of(FarSide(taken=[record]).names[0]) for record in taken]


def number_of(name: str) -> int:
    return int(name.rpartition(".")[2])

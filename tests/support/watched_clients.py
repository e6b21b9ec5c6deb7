"""Clients of a fleet, which push named metrics at chosen seconds."""

from __future__ import annotations

import dataclasses
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.plugin import Origin, TelemetryRecord
from odradek_console.engine.findings import Finding
from odradek_console.engine.fleet import Fleet
from support.delta_clients import EPOCH_S, INTERVAL_S, TOPIC, A, Scene, counter, gauge, point

JAVA = {"client_software_name": "apache-kafka-java", "client_software_version": "4.3.0"}


class WatchedClients:
    """Records of clients, in the fleet that they are added to."""

    def __init__(self, fleet: Fleet | None = None) -> None:
        self.fleet = fleet or Fleet()
        self.scene = Scene()
        self.next_offset = 0

    def record(
        self,
        at: float,
        *metrics: Metric,
        instance: bytes = A,
        client_id: str = "orders-1",
        refused: int = 0,
        interval_s: float = INTERVAL_S,
        **connection: Any,
    ) -> TelemetryRecord:
        """A push that the host receives at a second."""
        given = {key: connection.pop(key, None) for key in ("group_id", "gateway")}
        labels = {key: value for key, value in given.items() if value}
        record = self.scene.record(
            *metrics,
            at=at,
            instance=instance,
            labels=labels,
            terminating=connection.pop("terminating", False),
        )
        record.observed = connection.pop("observed", False)
        record.push_interval_ms = int(interval_s * 1000)
        record.position = Origin(TOPIC, 0, self.next_offset)
        self.next_offset += 1
        facts = JAVA | connection
        of_connection = dataclasses.replace(record.context.connection, **facts)
        record.context = dataclasses.replace(record.context, connection=of_connection, client_id=client_id)
        record.payload = dataclasses.replace(record.payload, refused=refused)
        return record

    def push(self, at: float, *metrics: Metric, **facts: Any) -> None:
        self.fleet.add(self.record(at, *metrics, **facts))

    def findings(self, at: float, instance: bytes = A) -> dict[str, Finding]:
        """The findings of a client at a second, by id."""
        return {each.id: each for each in self.fleet.findings(self.fleet.clients[instance], ms(at))}


def total(name: str, value: float, at: float, since: float, **labels: str) -> Metric:
    """An increase of a counter."""
    return counter(point(value, since, at, labels), name=f"org.apache.kafka.{name}")


def level(name: str, value: float, at: float, **labels: str) -> Metric:
    """A value of a gauge."""
    found = gauge(time=at)
    found.name = f"org.apache.kafka.{name}"
    found.gauge.data_points.append(point(value, None, at, labels))
    return found


def ms(second: float) -> int:
    """Epoch milliseconds of a second of the scenarios."""
    return int((EPOCH_S + second) * 1000)

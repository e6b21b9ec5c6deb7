"""Each finding of the table of troubles, by clients that have it, and by clients that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.plugin.troubles import FINDINGS
from support.delta_clients import EPOCH_S, B
from support.watched_clients import WatchedClients, level, total

Made = Callable[[float], list[Metric]]
OCTOBER_2025 = 1_759_276_800 - EPOCH_S
LIBRDKAFKA = {"client_software_name": "confluent-kafka-python", "client_software_version": "2.12.0"}


def of_gauge(name: str, value: float, **labels: str) -> Made:
    return lambda at: [level(name, value, at, **labels)]


def of_gauges(**values: float) -> Made:
    return lambda at: [level(name.replace("_", "."), value, at) for name, value in values.items()]


def of_counter(name: str, each: float, **labels: str) -> Made:
    return lambda at: [total(name, each, at, at - 60, **labels)]


SICK: dict[str, Made] = {
    "slow-produce-requests": of_gauge("producer.node.request.latency.max", 6000, node_id="1"),
    "slow-consume-requests": of_gauge("consumer.node.request.latency.max", 6000, node_id="1"),
    "retries": lambda at: [
        total("producer.record.retry.total", 5, at, at - 60),
        total("producer.record.send.total", 100, at, at - 60),
    ],
    "record-errors": of_counter("producer.record.error.total", 1),
    "buffer-exhausted": of_counter("producer.buffer.exhausted.total", 1),
    "buffer-nearly-full": of_gauges(producer_buffer_available_bytes=1, producer_buffer_total_bytes=100),
    "long-queue": of_gauge("producer.record.queue.time.max", 40_000),
    "throttled-produce": of_gauge("producer.produce.throttle.time.avg", 5),
    "throttled-fetch": of_gauge("consumer.fetch.manager.fetch.throttle.time.avg", 5),
    "rebalance-storm": of_counter("consumer.coordinator.rebalance.total", 1),
    "long-rebalances": of_counter("consumer.coordinator.rebalance.latency.total", 20_000),
    "failed-rebalances": of_counter("consumer.coordinator.failed.rebalance.total", 1),
    "slow-commits": of_gauge("consumer.coordinator.commit.latency.max", 9000),
    "producer-reconnects": of_counter("producer.connection.creation.total", 5),
    "consumer-reconnects": of_counter("consumer.connection.creation.total", 5),
    "one-record-batches": of_gauges(producer_records_per_request_avg=1, producer_record_send_rate=500),
    "small-batches": of_gauges(
        producer_batch_size_avg=200, producer_request_rate=100, producer_record_queue_time_avg=0.1
    ),
    "slow-poll": of_gauge("consumer.time.between.poll.max", 280_000),
    "busy-application": of_gauge("consumer.poll.idle.ratio.avg", 0.02),
    "lag-without-fetches": lambda at: [
        level("consumer.fetch.manager.records.lag.max", at * 100, at),
        level("consumer.fetch.manager.fetch.rate", 0, at),
    ],
}
OF_FACTS = {
    "silent",
    "uneven-partitions",
    "clock-skew",
    "payload-too-large",
    "known-defect",
    "past-support",
}
HEALTHY: list[Made] = [
    of_gauge("producer.node.request.latency.max", 20, node_id="1"),
    of_gauges(producer_records_per_request_avg=1, producer_record_send_rate=1),
    of_gauges(producer_batch_size_avg=200, producer_request_rate=1, producer_record_queue_time_avg=0.1),
    of_gauges(producer_records_per_request_avg=1),
    of_gauge("consumer.poll.idle.ratio.avg", 0.9),
    of_counter("producer.record.send.total", 1000),
    of_counter("producer.connection.creation.total", 0.1),
    lambda at: [
        level("consumer.fetch.manager.records.lag.max", at * 100, at),
        level("consumer.fetch.manager.fetch.rate", 5, at),
    ],
]


def test_each_finding_of_the_table_has_a_test() -> None:
    assert {each.id for each in FINDINGS} == SICK.keys() | OF_FACTS


@pytest.mark.parametrize("trouble", SICK)
def test_a_client_in_trouble_has_the_finding(trouble: str) -> None:
    clients = WatchedClients()

    for minute in range(1, 31):
        clients.push(60 * minute, *SICK[trouble](60 * minute))

    found = clients.findings(60 * 30)
    assert found.keys() == {trouble}
    assert found[trouble].advice
    assert found[trouble].evidence


@pytest.mark.parametrize("made", HEALTHY)
def test_a_healthy_client_has_none(made: Made) -> None:
    clients = WatchedClients()

    for minute in range(1, 31):
        clients.push(60 * minute, *made(60 * minute))

    assert clients.findings(60 * 30) == {}


def test_a_finding_waits_for_its_time() -> None:
    clients = WatchedClients()
    sick = SICK["slow-produce-requests"]

    clients.push(60, *sick(60))
    clients.push(120, *sick(120))

    assert clients.findings(120) == {}
    clients.push(180, *sick(180))
    assert clients.findings(180)["slow-produce-requests"].labels == (("node_id", "1"),)


def test_a_finding_ends_with_its_condition() -> None:
    clients = WatchedClients()
    for minute in range(1, 6):
        clients.push(60 * minute, *SICK["busy-application"](60 * minute))

    clients.push(360, *HEALTHY[4](360))

    assert clients.findings(360) == {}


def test_a_metric_that_is_wrong_in_a_version_makes_no_finding() -> None:
    clients, sick = WatchedClients(), SICK["busy-application"]
    old = LIBRDKAFKA | {"client_software_version": "2.8.0"}

    for minute in range(1, 6):
        clients.push(60 * minute, *sick(60 * minute), **LIBRDKAFKA)
        clients.push(60 * minute, *sick(60 * minute), instance=B, **old)

    assert clients.findings(300).keys() == {"busy-application"}
    assert clients.findings(300, B).keys() == {"known-defect"}


@pytest.mark.parametrize(
    ("facts", "seconds", "trouble"),
    [
        ({"refused": 118}, 0, "payload-too-large"),
        ({"client_software_version": "3.4.0"}, 0, "past-support"),
        ({"client_software_version": "4.3.1"}, 0, "known-defect"),
        ({}, 60 * 10, "silent"),
    ],
)
def test_facts_make_findings(facts: dict[str, Any], seconds: float, trouble: str) -> None:
    clients = WatchedClients()
    for minute in range(1, 4):
        clients.push(OCTOBER_2025 + 60 * minute, **facts)

    found = clients.findings(OCTOBER_2025 + 180 + seconds)

    assert found.keys() == {trouble}


def test_a_library_is_supported_until_the_day_its_support_ends() -> None:
    clients = WatchedClients()

    clients.push(OCTOBER_2025 - 90 * 86_400, client_software_version="3.4.0")

    assert clients.findings(OCTOBER_2025 - 90 * 86_400) == {}


def test_a_clock_that_is_wrong() -> None:
    clients = WatchedClients()

    clients.push(600, level("producer.request.rate", 1, 480))

    assert clients.findings(600)["clock-skew"].value == 120


def test_a_member_with_many_more_partitions_than_the_others() -> None:
    clients = WatchedClients()
    name = "consumer.coordinator.assigned.partitions"

    for number, partitions in enumerate((10, 1, 1, 1)):
        instance = bytes([number + 1]) * 16
        clients.push(60, level(name, partitions, 60), instance=instance, group_id="g")

    assert clients.findings(60, bytes([1]) * 16).keys() == {"uneven-partitions"}
    assert clients.findings(60, bytes([2]) * 16) == {}

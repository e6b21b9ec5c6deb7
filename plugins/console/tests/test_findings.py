"""Each finding of the table of troubles, by clients that have it, and by clients that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.findings.hints import FINDINGS
from odradek_console.engine.client_series import ClientSeries
from odradek_console.engine.findings import Life, findings_of
from odradek_console.pictures import client_detail
from support.delta_clients import EPOCH_S, A, B
from support.watched_clients import JAVA, WatchedClients, level, ms, total

Made = Callable[[float], list[Metric]]
MINUTE_S, HALF_AN_HOUR_S, DAY_S = 60, 1800, 86_400
OCTOBER_2025 = 1_759_276_800 - EPOCH_S
LIBRDKAFKA = {
    "client_software_name": "confluent-kafka-python",
    "client_software_version": "2.16.1-rdkafka-2.16.0",
}


def series_of(clients: WatchedClients) -> ClientSeries:
    found = clients.fleet.series(clients.fleet.clients[A])
    assert found is not None
    return found


def gauges(**values: float) -> Made:
    return lambda at: [level(name.replace("_", "."), value, at) for name, value in values.items()]


def by_node(name: str, value: float) -> Made:
    return lambda at: [level(name, value, at, node_id="1")]


def counters(**increases: float) -> Made:
    """Increases of each minute."""
    return lambda at: [
        total(name.replace("_", "."), each, at, at - MINUTE_S) for name, each in increases.items()
    ]


def lag(growth: float, read: float) -> Made:
    """A lag that grows by so much in a second, while so many records a minute are read."""
    return lambda at: [
        level("consumer.fetch.manager.records.lag", 100 + at * growth, at, topic="t", partition="0"),
        total("consumer.fetch.manager.records.consumed.total", read, at, at - MINUTE_S, topic="t"),
    ]


def sometimes(name: str, value: float) -> Made:
    """An increase in one of 25 minutes."""
    return lambda at: [total(name, value * (at % 1500 == 0), at, at - MINUTE_S)]


CASES: dict[str, tuple[Made, Made]] = {
    "slow-produce-requests": (
        by_node("producer.node.request.latency.max", 6000),
        by_node("producer.node.request.latency.max", 20),
    ),
    "slow-consume-requests": (
        by_node("consumer.node.request.latency.max", 6000),
        by_node("consumer.node.request.latency.max", 510),
    ),
    "retries": (
        counters(producer_record_retry_total=5, producer_record_send_total=100),
        counters(producer_record_retry_total=5, producer_record_send_total=10_000),
    ),
    "record-errors": (
        counters(producer_record_error_total=1),
        counters(producer_record_error_total=0, producer_record_send_total=100),
    ),
    "buffer-exhausted": (
        counters(producer_buffer_exhausted_total=1),
        counters(producer_buffer_exhausted_total=0),
    ),
    "buffer-nearly-full": (
        gauges(producer_buffer_available_bytes=1, producer_buffer_total_bytes=100),
        gauges(producer_buffer_available_bytes=90, producer_buffer_total_bytes=100),
    ),
    "long-queue": (gauges(producer_record_queue_time_max=40_000), gauges(producer_record_queue_time_max=80)),
    "throttled-produce": (
        gauges(producer_produce_throttle_time_avg=5),
        gauges(producer_produce_throttle_time_avg=0),
    ),
    "throttled-fetch": (
        gauges(consumer_fetch_manager_fetch_throttle_time_avg=5),
        gauges(consumer_fetch_manager_fetch_throttle_time_avg=0),
    ),
    "rebalance-storm": (
        counters(consumer_coordinator_rebalance_total=1),
        sometimes("consumer.coordinator.rebalance.total", 20),
    ),
    "long-rebalances": (
        counters(consumer_coordinator_rebalance_latency_total=20_000),
        counters(consumer_coordinator_rebalance_latency_total=500),
    ),
    "failed-rebalances": (
        counters(consumer_coordinator_failed_rebalance_total=1, consumer_coordinator_rebalance_total=0),
        sometimes("consumer.coordinator.failed.rebalance.total", 1),
    ),
    "slow-commits": (
        gauges(consumer_coordinator_commit_latency_max=9000),
        gauges(consumer_coordinator_commit_latency_max=9),
    ),
    "producer-reconnects": (
        counters(producer_connection_creation_total=5),
        sometimes("producer.connection.creation.total", 40),
    ),
    "producer-failed-authentication": (
        counters(producer_failed_authentication_total=1),
        sometimes("producer.failed.authentication.total", 2),
    ),
    "consumer-reconnects": (
        counters(consumer_connection_creation_total=5),
        sometimes("consumer.connection.creation.total", 40),
    ),
    "consumer-failed-authentication": (
        counters(consumer_failed_authentication_total=1),
        sometimes("consumer.failed.authentication.total", 2),
    ),
    "one-record-batches": (
        gauges(producer_records_per_request_avg=1, producer_record_send_rate=500),
        gauges(producer_records_per_request_avg=1, producer_record_send_rate=1),
    ),
    "small-batches": (
        gauges(producer_batch_size_avg=200, producer_request_rate=100, producer_record_queue_time_avg=0.1),
        gauges(producer_batch_size_avg=200, producer_request_rate=100, producer_record_queue_time_avg=5),
    ),
    "slow-poll": (gauges(consumer_time_between_poll_max=280_000), gauges(consumer_time_between_poll_max=900)),
    "busy-application": (
        gauges(consumer_poll_idle_ratio_avg=0.02),
        gauges(consumer_poll_idle_ratio_avg=0.9),
    ),
    "behind": (lag(growth=1, read=10), lag(growth=-0.01, read=10)),
    "stalled": (lag(growth=1, read=0), lag(growth=-0.01, read=0)),
}
"""A client in trouble, and a healthy one, by the trouble."""
OF_FACTS = {
    "silent",
    "uneven-partitions",
    "clock-skew",
    "payload-too-large",
    "known-defect",
    "past-support",
}
OF_INCIDENTS = {
    "failed-logins",
    "stuck",
    "comes-and-goes",
    "group-errors",
    "lost",
    "throttled",
    "topic-refusals",
    "unknown-topic",
    "topic-errors",
}
"""See ``test_incident_findings.py``."""
SENT_BY_LIBRDKAFKA = {
    "slow-produce-requests",
    "slow-consume-requests",
    "long-queue",
    "throttled-produce",
    "long-rebalances",
    "slow-commits",
    "producer-reconnects",
    "consumer-reconnects",
    "busy-application",
}
LIBRARIES = [
    *[(name, JAVA) for name in CASES],
    *[(name, LIBRDKAFKA) for name in CASES if name in SENT_BY_LIBRDKAFKA],
]


def half_an_hour(made: Made, interval_s: int = MINUTE_S, facts: Mapping[str, str] = JAVA) -> WatchedClients:
    """A client that has pushed for half an hour."""
    clients = WatchedClients()
    for at in range(MINUTE_S, HALF_AN_HOUR_S + 1, MINUTE_S):
        if at % interval_s == 0:
            clients.push(at, *made(at), interval_s=interval_s, **facts)
    return clients


def test_each_finding_of_the_table_has_a_test() -> None:
    assert {each.id for each in FINDINGS} == CASES.keys() | OF_FACTS | OF_INCIDENTS


def test_the_troubles_that_clients_of_librdkafka_can_show() -> None:
    found = {each.id for each in FINDINGS if "librdkafka" in each.metrics}

    assert found == SENT_BY_LIBRDKAFKA | OF_FACTS | OF_INCIDENTS


@pytest.mark.parametrize(("trouble", "library"), LIBRARIES)
def test_a_client_in_trouble_has_the_finding(trouble: str, library: dict[str, str]) -> None:
    clients = half_an_hour(CASES[trouble][0], facts=library)

    found = clients.findings(HALF_AN_HOUR_S)

    assert found.keys() == {trouble}
    assert found[trouble].advice
    assert found[trouble].source
    assert found[trouble].evidence


@pytest.mark.parametrize(("trouble", "library"), LIBRARIES)
def test_a_healthy_client_has_none(trouble: str, library: dict[str, str]) -> None:
    clients = half_an_hour(CASES[trouble][1], facts=library)

    assert clients.findings(HALF_AN_HOUR_S) == {}


@pytest.mark.parametrize("trouble", sorted(CASES.keys() - SENT_BY_LIBRDKAFKA))
def test_what_librdkafka_cannot_show_is_not_reported_by_it(trouble: str) -> None:
    (metric,) = next(each.metrics.values() for each in FINDINGS if each.id == trouble)
    role = gauges(producer_request_latency_avg=1, consumer_fetch_manager_fetch_latency_avg=1)
    clients = half_an_hour(role, facts=LIBRDKAFKA)

    detail = client_detail(clients.fleet, clients.fleet.clients[A], ms(HALF_AN_HOUR_S))

    assert metric in detail.not_reported


@pytest.mark.parametrize("interval_s", [300, 1800])
@pytest.mark.parametrize("trouble", CASES)
def test_a_client_that_pushes_seldom_and_is_healthy(trouble: str, interval_s: int) -> None:
    clients = half_an_hour(CASES[trouble][1], interval_s=interval_s)

    assert clients.findings(HALF_AN_HOUR_S) == {}


@pytest.mark.parametrize("trouble", CASES)
def test_the_default_interval_of_five_minutes_shows_each_trouble(trouble: str) -> None:
    clients = WatchedClients()
    sick = CASES[trouble][0]

    for number in range(1, 13):
        at = 302 * number  # a client is not exact to the second
        five_minutes = [each for minute in range(5) for each in sick(at - 60 * minute)][::-1]
        clients.push(at, *(five_minutes if five_minutes[0].HasField("sum") else sick(at)), interval_s=300)

    assert clients.findings(302 * 12).keys() == {trouble}


def test_an_increase_of_an_hour_is_no_increase_of_ten_minutes() -> None:
    clients = WatchedClients()
    name = "producer.connection.creation.total"

    for hour in range(1, 4):
        clients.push(3600 * hour, total(name, 60, 3600 * hour, 3600 * (hour - 1)), interval_s=3600)

    assert clients.findings(3 * 3600) == {}
    for hour in range(4, 8):
        clients.push(3600 * hour, total(name, 240, 3600 * hour, 3600 * (hour - 1)), interval_s=3600)
    assert clients.findings(7 * 3600)["producer-reconnects"].value == pytest.approx(20, rel=0.3)


def test_a_condition_that_is_no_longer_pushed_does_not_hold() -> None:
    clients = half_an_hour(CASES["one-record-batches"][0])

    for at in range(HALF_AN_HOUR_S + 60, HALF_AN_HOUR_S + 301, 60):
        clients.push(at, level("producer.records.per.request.avg", 1, at))

    assert clients.findings(HALF_AN_HOUR_S + 300) == {}


def test_a_condition_whose_metric_is_wrong_in_a_version_does_not_hold() -> None:
    found = findings_of(
        "apache-kafka-java",
        series_of(half_an_hour(CASES["one-record-batches"][0])),
        {},
        Life(ms(60), 60_000),
        distrusted=frozenset({"org.apache.kafka.producer.record.send.rate"}),
    )

    assert found == []


def test_a_finding_waits_for_its_time() -> None:
    clients = WatchedClients()
    sick = CASES["slow-produce-requests"][0]

    clients.push(60, *sick(60))
    clients.push(120, *sick(120))

    assert clients.findings(120) == {}
    clients.push(180, *sick(180))
    assert clients.findings(180)["slow-produce-requests"].labels == (("node_id", "1"),)


def test_a_finding_ends_with_its_condition() -> None:
    clients = WatchedClients()
    for minute in range(1, 6):
        clients.push(60 * minute, *CASES["slow-poll"][0](60 * minute))
    assert clients.findings(300).keys() == {"slow-poll"}

    clients.push(360, *CASES["slow-poll"][1](360))

    assert clients.findings(360) == {}


def test_a_metric_that_is_wrong_in_a_version_makes_no_finding() -> None:
    clients, sick = WatchedClients(), CASES["busy-application"][0]
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
        ({"refused": 118} | LIBRDKAFKA, 0, "payload-too-large"),
        ({"client_software_version": "3.4.0"}, 0, "past-support"),
        ({"client_software_version": "7.7.0-ccs"}, 300 * DAY_S, "past-support"),
        (LIBRDKAFKA | {"client_software_version": "2.10.1"}, 0, "known-defect"),
        ({}, 60 * 10, "silent"),
        (LIBRDKAFKA, 60 * 10, "silent"),
    ],
)
def test_facts_make_findings(facts: dict[str, Any], seconds: float, trouble: str) -> None:
    clients = WatchedClients()
    begin = OCTOBER_2025 + seconds - seconds % DAY_S
    for minute in range(1, 4):
        clients.push(begin + 60 * minute, **facts)

    found = clients.findings(begin + 180 + seconds % DAY_S)

    assert found.keys() == {trouble}
    assert found[trouble].advice


@pytest.mark.parametrize("facts", [JAVA, LIBRDKAFKA, JAVA | {"client_software_version": "7.9.1-ccs"}])
def test_a_client_without_facts_against_it(facts: dict[str, Any]) -> None:
    clients = WatchedClients()
    for minute, code in enumerate((118, 118, 0, 118, 89), 1):
        clients.push(OCTOBER_2025 + 60 * minute, refused=code, **facts)

    assert clients.findings(OCTOBER_2025 + 330) == {}


def test_a_silent_client_of_java_may_have_stopped_for_ever() -> None:
    clients = WatchedClients()
    clients.push(60)
    clients.push(60, instance=B, **LIBRDKAFKA)
    for at in range(60, 601, 60):
        clients.push(at, instance=b"C" * 16)

    assert "INVALID_RECORD" in clients.findings(600)["silent"].detail
    assert clients.findings(600, B)["silent"].detail == ""


def test_a_client_that_said_goodbye_is_not_silent() -> None:
    clients = WatchedClients()
    clients.push(60)
    clients.push(61, terminating=True)

    assert clients.findings(6000) == {}


def test_a_library_is_supported_until_the_day_its_support_ends() -> None:
    clients = WatchedClients()

    clients.push(OCTOBER_2025 - 90 * DAY_S, client_software_version="3.4.0")

    assert clients.findings(OCTOBER_2025 - 90 * DAY_S) == {}


@pytest.mark.parametrize("facts", [JAVA, LIBRDKAFKA])
@pytest.mark.parametrize("skew_s", [-120, 0, 5, 120])
def test_a_clock_that_is_wrong(skew_s: float, facts: dict[str, str]) -> None:
    clients = WatchedClients()

    clients.push(600, level("producer.request.rate", 1, 600 - skew_s), **facts)

    found = clients.findings(600)
    assert {name: each.value for name, each in found.items()} == (
        {"clock-skew": 120} if abs(skew_s) == 120 else {}
    )


def test_a_record_of_a_collector_tells_no_clock() -> None:
    clients = WatchedClients()
    record = clients.record(600, level("producer.request.rate", 1, 480))
    record.source = "otlp"

    clients.fleet.add(record)

    assert clients.findings(600) == {}


@pytest.mark.parametrize("facts", [JAVA, LIBRDKAFKA])
@pytest.mark.parametrize(
    ("partitions", "uneven"),
    [((10, 1, 1, 1), [0]), ((3, 3, 3, 2), []), ((2, 1, 1, 1), []), ((5,), []), ((0, 0), [])],
)
def test_a_member_with_many_more_partitions_than_the_others(
    partitions: tuple[int, ...], uneven: list[int], facts: dict[str, str]
) -> None:
    clients = WatchedClients()
    name = "consumer.coordinator.assigned.partitions"
    members = [bytes([number + 1]) * 16 for number in range(len(partitions))]

    def found(at: float) -> list[int]:
        for instance, count in zip(members, partitions, strict=True):
            clients.push(at, level(name, count, at), instance=instance, group_id="g", **facts)
        return [number for number, each in enumerate(members) if clients.findings(at, each)]

    assert found(60) == found(120) == []  # they have just come
    assert found(240) == uneven


def test_partitions_that_are_no_longer_pushed_are_not_compared() -> None:
    clients = WatchedClients()
    name = "consumer.coordinator.assigned.partitions"
    for number, partitions in enumerate((10, 1, 1, 1)):
        instance = bytes([number + 1]) * 16
        clients.push(60, level(name, partitions, 60), instance=instance, group_id="g")
        for at in (120, 180, 240):
            clients.push(at, level("consumer.request.rate", 1, at), instance=instance, group_id="g")

    assert clients.findings(240, bytes([1]) * 16) == {}

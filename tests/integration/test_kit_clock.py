"""Hours of a host in milliseconds: expiry, push intervals, quota windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from conformance.telemetry_broker import otlp
from odradek.broker.client_quotas import QuotaFilter
from odradek.testing import RunningHost, VirtualClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.data_requests import produce_request
from support.wire_client import WireClient

HOUR_MS = 3_600_000


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """A host with a virtual clock."""
    host = odradek_hosts(clock=VirtualClock())
    host.subscribe("org.", interval_ms=HOUR_MS // 60)
    return host


@pytest.fixture
def client(host: RunningHost) -> Iterator[WireClient]:
    with WireClient(host.address) as client:
        client.introduce()
        yield client


def push(client: WireClient, told: GetTelemetrySubscriptionsResponse) -> ErrorCode:
    request = PushTelemetryRequest(
        client_instance_id=told.client_instance_id,
        subscription_id=told.subscription_id,
        metrics=otlp("org.x"),
    )
    return ErrorCode(client.send(request).error_code)


def test_a_push_is_due_after_the_interval(host: RunningHost, client: WireClient) -> None:
    told = client.subscriptions()
    answers = [push(client, told), push(client, told)]

    host.clock.advance(told.push_interval_ms - 1)
    answers.append(push(client, told))
    host.clock.advance(1)
    answers.append(push(client, told))

    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert answers == [ErrorCode.NONE, refused, refused, ErrorCode.NONE]


def test_a_client_instance_is_forgotten_after_three_intervals(host: RunningHost, client: WireClient) -> None:
    told = client.subscriptions()
    instances = host.host.telemetry.instances

    host.clock.advance(3 * told.push_interval_ms - 1)
    before = host.call(lambda: len(instances()))
    host.clock.advance(1)

    assert (before, host.call(lambda: len(instances()))) == (1, 0)


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(
    odradek_hosts: Callable[..., RunningHost],
) -> None:
    host = odradek_hosts(clock=VirtualClock(), connections_max_idle_ms=1_000)
    with WireClient(host.address) as idle, WireClient(host.address) as busy:
        idle.introduce()
        busy.introduce()
        host.clock.advance(600)
        busy.introduce()
        host.clock.advance(600)

        assert idle.closed_by_peer()
        busy.introduce()


def test_a_throttle_ends_after_its_time(host: RunningHost, client: WireClient) -> None:
    host.topics.create("t")
    host.quota(client_id="raw", producer_byte_rate=1_000)
    records = build_batch([Record(None, bytes(50_000))])
    request = produce_request("t", records)

    first = client.send(request, 9).throttle_time_ms
    client.send_bytes(client.frame(request, 9))
    for _ in range(10):  # turns of the loop, which would read it
        host.call(lambda: None)
    held = len(host.requests.of("Produce"))
    host.clock.advance(first)
    client.answer(request, 9)

    assert 35_000 < first < 60_000
    assert held == 1


def test_removing_a_quota_ends_the_throttling(host: RunningHost, client: WireClient) -> None:
    host.topics.create("t")
    host.quota(client_id=None, producer_byte_rate=1)
    host.quota(client_id=None, producer_byte_rate=None)
    records = build_batch([Record(None, bytes(50_000))])

    response = client.send(produce_request("t", records), 9)

    assert response.throttle_time_ms == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"producer_byte_rate": 1.0}, "no entity given"),
        (
            {"user": "a", "producer_byte_rat": 1.0},
            "unknown quota 'producer_byte_rat': did you mean producer_byte_rate",
        ),
        ({"ip": "10.0.0.1", "producer_byte_rate": 1.0}, "unknown quota 'producer_byte_rate'"),
        ({"user": "a"}, "no quota given"),
    ],
)
def test_an_invalid_quota_is_refused(host: RunningHost, arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        host.quota(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        {"user": "a", "producer_byte_rate": -1},
        {"ip": "10.0.0.1", "user": "a", "connection_creation_rate": 1},
        {"ip": "no address", "connection_creation_rate": 1},
    ],
)
def test_a_quota_that_an_operator_could_not_set_is_refused(
    host: RunningHost, arguments: dict[str, object]
) -> None:
    with pytest.raises(ApiError) as refused:
        host.quota(**arguments)  # type: ignore[arg-type]

    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_clients_can_describe_a_quota(host: RunningHost) -> None:
    host.quota(user="alice", client_id="app", producer_byte_rate=1_000)

    found = QuotaFilter({"user": "alice", "client-id": "app"}, frozenset(), True)

    described = host.call(lambda: list(host.host.broker.client_quotas.find(found)))
    assert described == [({"user": "alice", "client-id": "app"}, {"producer_byte_rate": 1_000})]


def test_records_expire(host: RunningHost, client: WireClient) -> None:
    host.topics.create("t", retention_ms=HOUR_MS, segment_ms=HOUR_MS // 2)
    now_ms = host.clock.now_ms()
    records = build_batch([Record(None, b"old", now_ms)])
    client.send(produce_request("t", records), 9)
    assert len(host.topics.records("t")) == 1

    host.clock.advance(3 * HOUR_MS)

    assert host.topics.records("t") == []


def test_compaction_is_done_when_the_time_is_over(host: RunningHost) -> None:
    host.topics.create("t", cleanup_policy="compact", segment_ms=1_000, min_cleanable_dirty_ratio=0)
    for number in range(12):
        host.topics.produce("t", str(number), key=f"k{number % 3}")
        host.clock.advance(1_001)
    host.topics.produce("t", "active", key="a")

    host.clock.advance(HOUR_MS // 60)

    assert [record.value for record in host.topics.records("t")] == [b"9", b"10", b"11", b"active"]


def test_files_of_deleted_segments_are_gone_when_the_time_is_over(host: RunningHost) -> None:
    host.topics.create("t", retention_ms=HOUR_MS, segment_ms=HOUR_MS // 2, file_delete_delay_ms=1_000)
    host.topics.produce("t", "old")
    host.clock.advance(HOUR_MS)
    host.topics.produce("t", "new")

    host.clock.advance(HOUR_MS)

    folder = host.call(lambda: host.host.broker.topics.log("t", 0).directory)
    assert [each.name for each in folder.glob("*.log")] == ["00000000000000000001.log"]
    assert not list(folder.glob("*.deleted"))


def test_the_clock_can_advance_by_days(host: RunningHost) -> None:
    before_ms = host.clock.now_ms()

    host.clock.advance(25 * HOUR_MS + 1)

    assert host.clock.now_ms() - before_ms == 25 * HOUR_MS + 1


def test_time_cannot_go_back(host: RunningHost) -> None:
    before_ms = host.clock.now_ms()

    with pytest.raises(ValueError, match="back"):
        host.clock.advance(-5)

    assert host.clock.now_ms() == before_ms


def test_a_host_with_the_system_clock_cannot_advance_it(odradek_host: RunningHost) -> None:
    with pytest.raises(RuntimeError, match="machine's clock"):
        odradek_host.clock.advance(1)

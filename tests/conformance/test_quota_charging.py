"""The bytes and time that requests are charged, and the throttle that follows; the order of checks is that of
KafkaApis. After Kafka's RequestQuotaTest and BaseQuotaTest.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from odradek.broker.dispatch.routes import CloseConnection, Route, Routes
from odradek.broker.dispatch.throttling import charge_nothing
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.quota_config import QuotaConfig
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.fetch import FetchRequest, ReplicaState
from odradek.wire.messages.metadata import MetadataRequest
from odradek.wire.messages.produce import ProduceRequest
from support.broker import BrokerClient
from support.element_requests import smallest
from support.quota_client import EVERY_CLIENT, SLOW_NS, QuotaClient, records_in
from support.tenant_quotas import TenantQuotas

MS = 1_000_000

ROUTES = {route.request.__name__.removesuffix("Request"): route for route in Routes().values()}
CHARGED = [pytest.param(route, id=name) for name, route in sorted(ROUTES.items())
           if route.charge is not charge_nothing]  # fmt: skip


@pytest.fixture
def client() -> QuotaClient:
    return QuotaClient()


def send_until_throttled(client: QuotaClient, route: Route) -> Any:
    """The first answer that throttles the client."""
    for _ in range(3):
        response = client.send(smallest(route.request), route.versions.last)
        if client.muted_ms:
            return response
    raise AssertionError("never throttled")


@pytest.mark.parametrize("route", CHARGED)
def test_every_client_api_is_throttled_for_its_time(route: Route) -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(request_percentage=0.01)

    response = send_until_throttled(client, route)

    assert client.muted_by == "Request"
    assert client.muted_ms == 1000  # at most one window
    assert getattr(response, "throttle_time_ms", 1000) == 1000
    assert client.metric("throttle-time", "Request") == 1000


@pytest.mark.parametrize("route", CHARGED)
def test_a_client_with_a_large_quota_is_not_throttled(route: Route) -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(request_percentage=2000)

    for _ in range(3):
        client.send(smallest(route.request), route.versions.last)

    assert client.muted_ms == 0
    assert client.metric("request-time", "Request") > 0
    assert math.isnan(client.metric("throttle-time", "Request"))


def test_produce_bytes_throttle_longer_than_time() -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(producer_byte_rate=1, request_percentage=0.01)

    response = client.produce()

    assert client.muted_by == "Produce"
    assert response.throttle_time_ms == client.muted_ms > 1000
    assert client.metric("throttle-time", "Produce") == client.muted_ms
    assert math.isnan(client.metric("throttle-time", "Request"))
    assert client.metric("request-time", "Request") > 0


def test_fetch_bytes_throttle_longer_than_time() -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.produce()
    client.limit(consumer_byte_rate=1, request_percentage=0.01)

    response = client.fetch()

    assert client.muted_by == "Fetch"
    assert response.throttle_time_ms == client.muted_ms > 1000
    assert math.isnan(client.metric("throttle-time", "Request"))


@pytest.mark.parametrize("version", [12, 17])
def test_a_replica_is_not_charged_for_time(version: int) -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(request_percentage=0.01, consumer_byte_rate=1)
    replica: dict[str, Any] = (
        {"replica_id": 2} if version < 15 else {"replica_state": ReplicaState(replica_id=2)}
    )

    for _ in range(3):
        response = client.fetch(version=version, topics=[], **replica)

    assert (client.muted_ms, response.throttle_time_ms) == (0, 0)
    assert client.metric("exempt-request-time", "Request") > 0
    assert client.metric("throttle-time", "Request") == 0  # the client has no budget at all


def test_an_error_is_charged_like_an_answer() -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(request_percentage=0.01)
    refused = client.fetching(isolation_level=7)  # refused before the request is processed

    response = client.send(refused, 12)

    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert response.throttle_time_ms == client.muted_ms == 1000
    assert client.muted_by == "Request"


@pytest.mark.parametrize("version", range(5))
def test_api_versions_reports_its_throttle_time(version: int) -> None:
    client = QuotaClient(handler_ns=SLOW_NS)
    client.limit(request_percentage=0.01)

    response = client.send(ApiVersionsRequest(), version)

    assert client.muted_ms == 1000
    assert response.throttle_time_ms == (1000 if version >= 1 else 0)


def test_without_a_quota_nothing_is_measured(client: QuotaClient) -> None:
    client.handler_ns = SLOW_NS

    client.produce()

    assert client.elapsed_ns == 1  # the clock was not read
    assert client.muted_ms == 0
    assert not client.quotas.produce.metrics.metrics


def test_produce_is_charged_for_header_and_body(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1e9)

    client.produce(size=1000)

    # the batch of one record has 1000 bytes of value and some 70 bytes of overhead, plus names and header
    assert 1100 <= client.metric("byte-rate", "Produce") * 10 <= 1200
    assert client.muted_ms == 0


def test_refused_produce_is_charged_too(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1)
    client.client.broker.topics.delete(client.client.broker.topics.by_name["t"])

    response = client.produce()

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.muted_by == "Produce"


def test_produce_is_throttled_once_for_the_longer_throttle(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=100, request_percentage=1)
    client.handler_ns = 105 * MS // 2  # handler and network together

    response = client.produce(size=11)

    # the bytes are far below 100 per second over ten seconds; only the handler's time throttles
    assert client.metric("request-time", "Request") > 0
    assert (client.muted_ms, response.throttle_time_ms) == (0, 0)


def test_produce_without_an_answer_still_throttles_the_client(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=10, request_percentage=0.01)
    client.handler_ns = SLOW_NS

    response = client.produce(acks=0)

    assert response is None
    assert client.client.throttled is not None
    assert client.client.throttled.frame is None
    assert client.muted_by == "Produce"
    assert client.muted_ms > 10_000
    assert client.metric("exempt-request-time", "Request") > 0
    assert client.metric("request-time", "Request") == 0


def test_produce_without_an_answer_does_not_throttle_for_time_alone(client: QuotaClient) -> None:
    client.limit(request_percentage=0.01)
    client.handler_ns = SLOW_NS

    client.produce(acks=0)

    assert client.muted_ms == 0
    assert client.metric("exempt-request-time", "Request") > 0


def test_a_request_that_closes_its_connection_is_still_charged(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1e9)
    client.client.broker.topics.delete(client.client.broker.topics.by_name["t"])

    with pytest.raises(CloseConnection):
        client.produce(acks=0)

    assert client.metric("byte-rate", "Produce") > 0


def test_a_fetch_throttled_for_its_time_is_not_charged_for_bytes(client: QuotaClient) -> None:
    client.produce()
    client.limit(consumer_byte_rate=1e9, request_percentage=0.01)
    client.handler_ns = SLOW_NS

    response = client.fetch()

    assert (response.throttle_time_ms, client.muted_by) == (1000, "Request")
    assert (response.responses, records_in(response)) == ([], 0)
    assert client.metric("byte-rate", "Fetch") == 0


def test_a_fetch_is_charged_for_its_response(client: QuotaClient) -> None:
    client.produce(size=1000)
    client.limit(consumer_byte_rate=1e6)

    response = client.fetch()

    assert records_in(response) > 1000
    assert records_in(response) < client.metric("byte-rate", "Fetch") * 10 < records_in(response) + 100


def test_a_throttled_fetch_is_empty_and_a_later_one_returns_everything(client: QuotaClient) -> None:
    for _ in range(8):
        client.produce(size=1000)
    client.limit(consumer_byte_rate=500)

    first = client.fetch()
    second = client.fetch(offset=4)
    waited_ms = client.muted_ms
    client.clock.advance(11_000)
    third = client.fetch(offset=4)

    assert records_in(first) > 1000
    assert (records_in(second), second.throttle_time_ms) == (0, waited_ms)
    assert waited_ms > 0
    assert records_in(third) > 1000
    assert client.muted_ms == 0


def test_a_fetch_reads_at_most_the_rest_of_its_quota() -> None:
    client = QuotaClient(samples=4)
    for _ in range(20):
        client.produce(size=1000)
    client.limit(consumer_byte_rate=1500)

    response = client.fetch()

    assert client.quotas.fetch.max_value_in_quota_window("ANONYMOUS", "test") == 4500
    assert 2000 < records_in(response) <= 4500
    assert client.muted_ms == 0


def test_a_long_poll_ends_when_the_quota_is_filled(client: QuotaClient) -> None:
    for _ in range(3):
        client.produce(size=1000)
    batch_bytes = records_in(client.fetch(max_bytes=1))
    client.limit(consumer_byte_rate=2 * batch_bytes / 10)  # two batches in all windows

    response = client.fetch(min_bytes=1 << 20, max_wait_ms=500)

    # Both batches are read. With the overhead of the response they exceed the quota, so neither is returned.
    assert response is not None
    assert response.throttle_time_ms == client.muted_ms > 0


def test_a_throttled_fetch_does_not_advance_its_session(client: QuotaClient) -> None:
    opened = client.fetch(session_epoch=0, session_id=0)
    client.produce(size=1000)
    client.limit(consumer_byte_rate=1)

    throttled = client.fetch(session_id=opened.session_id, session_epoch=1, topics=[])
    client.limit(consumer_byte_rate=None)
    after = client.fetch(session_id=opened.session_id, session_epoch=2, topics=[])

    assert (throttled.session_id, throttled.error_code) == (opened.session_id, 0)
    assert throttled.throttle_time_ms > 0
    assert records_in(throttled) == 0
    assert records_in(after) > 1000


def test_a_throttled_fetch_opens_no_session(client: QuotaClient) -> None:
    client.produce(size=1000)
    client.limit(consumer_byte_rate=1)

    throttled = client.fetch(session_epoch=0, session_id=0)

    assert (throttled.session_id, throttled.responses) == (0, [])
    assert throttled.throttle_time_ms > 0
    assert not client.client.broker.fetch_sessions.sessions


def test_a_long_poll_is_charged_when_it_is_answered(client: QuotaClient) -> None:
    client.limit(consumer_byte_rate=50)
    waiting = client.fetch(max_wait_ms=500)

    client.produce(size=3000)
    answered = client.fetch()

    assert waiting is None
    assert client.metric("byte-rate", "Fetch") == 0  # not charged: the client did not get it
    assert answered.throttle_time_ms > 0


@pytest.mark.parametrize(
    ("entity", "others"),
    [
        (ClientQuotaEntity(user="ANONYMOUS"), 2),
        (ClientQuotaEntity(user=DEFAULT), 2),
        (ClientQuotaEntity(client_id="test"), 1),
        (ClientQuotaEntity(client_id=DEFAULT), 1),
        (ClientQuotaEntity(user="ANONYMOUS", client_id="test"), 1),
    ],
    ids=["user", "default-user", "client-id", "default-client-id", "user-and-client-id"],
)
def test_clients_share_a_budget_only_if_the_quota_covers_both(
    client: QuotaClient, entity: ClientQuotaEntity, others: int
) -> None:
    client.limit(entity, producer_byte_rate=150)
    neighbor = BrokerClient(client.client.broker, client_id="neighbor")

    client.produce(size=1000)
    client.client, first = neighbor, client.client
    client.produce(size=1000)

    assert first.throttled is None
    assert (client.muted_ms > 0) == (others == 2)


def test_the_user_in_a_metric_tag_is_sanitized(client: QuotaClient) -> None:
    client.client.connection.principal = "User:a b"
    client.limit(ClientQuotaEntity(user="a b"), producer_byte_rate=1)

    client.produce()

    (tags,) = [name.tags for name in client.quotas.produce.metrics.metrics if name.name == "byte-rate"]
    assert tags == (("user", "a%20b"), ("client-id", ""))
    assert client.muted_ms > 0


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_has_only_the_quota_of_its_user(
    client: QuotaClient, client_id: str | None
) -> None:
    client.client.client_id = client_id
    client.limit(producer_byte_rate=1)
    client.produce()
    without_ms = client.muted_ms

    client.limit(ClientQuotaEntity(user=DEFAULT), producer_byte_rate=1)
    client.produce()

    assert without_ms == 0
    assert client.muted_ms > 0


def test_removing_a_quota_ends_the_charging(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1, request_percentage=1)
    client.limit(producer_byte_rate=None)
    still_enabled = client.quotas.is_enabled
    client.limit(request_percentage=None)

    client.produce()

    assert still_enabled
    assert not client.quotas.is_enabled
    assert client.muted_ms == 0


def test_changing_a_quota_keeps_the_recorded_usage(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1e6)
    client.produce(size=5000)

    client.limit(producer_byte_rate=100)
    client.produce(size=10)

    assert client.muted_ms > 10_000


def test_a_callback_decides_which_clients_share_a_quota() -> None:
    client = QuotaClient(callback=TenantQuotas({"a": 200.0}))

    client.client.connection.principal = "User:a-1"
    client.produce(size=1500)
    client.client.connection.principal = "User:b-1"
    client.produce(size=9000)
    unlimited_ms = client.muted_ms
    client.client.connection.principal = "User:a-2"
    client.produce(size=1500)

    assert client.quotas.is_enabled
    assert unlimited_ms == 0
    assert client.muted_ms > 0


def test_throttled_partitions_are_not_sent_to_a_replica_above_the_rate(client: QuotaClient) -> None:
    broker = client.client.broker
    broker.topics.create("free", 1, {})
    leader = client.quotas.leader
    leader.mark_throttled("t")
    leader.update_quota(100)
    client.produce(size=2000)

    first = client.fetch(replica_id=2)
    second = client.fetch(replica_id=2)
    consumer = client.fetch()
    leader.update_quota(None)
    lifted = client.fetch(replica_id=2)

    assert records_in(first) > 2000
    assert records_in(second) == 0
    assert second.responses[0].partitions[0].error_code == 0
    assert records_in(consumer) > 2000
    assert records_in(lifted) > 2000


def test_a_request_of_a_disconnected_client_is_charged(client: QuotaClient) -> None:
    client.limit(request_percentage=100)
    client.handler_ns = SLOW_NS
    client.fetch(max_wait_ms=500)
    before = client.metric("request-time", "Request")

    client.clock.advance(500)

    assert before == 0  # the request is still running
    assert client.metric("request-time", "Request") > 0


def test_the_configured_windows_are_used() -> None:
    client = QuotaClient(samples=3)
    client.limit(EVERY_CLIENT, producer_byte_rate=500)

    client.produce(size=1500)  # more than 500 per second over two seconds

    assert client.muted_ms > 0
    assert client.quotas.produce.config == QuotaConfig(samples=3)


def test_other_requests_are_not_charged_for_bytes(client: QuotaClient) -> None:
    client.limit(producer_byte_rate=1, consumer_byte_rate=1)

    client.send(MetadataRequest(topics=None))

    assert client.muted_ms == 0


def test_apis_with_a_charge_of_their_own_are_known() -> None:
    own = {name for name, route in ROUTES.items() if route.charge.__name__ != "charge_time"}

    assert own >= {"Produce", "Fetch", "CreateTopics", "DeleteTopics", "CreatePartitions"}
    assert own - {"ApiVersions", "SaslHandshake", "SaslAuthenticate"} == {
        "Produce", "Fetch", "ShareFetch", "CreateTopics", "DeleteTopics", "CreatePartitions",
    }  # fmt: skip
    assert (ProduceRequest.API_KEY, FetchRequest.API_KEY) == (0, 1)

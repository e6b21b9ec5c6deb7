"""The metrics that are derived from the requests and responses of a client that does not push."""

from __future__ import annotations

import pytest

from odradek.gateway.observation.names import ALL_NAMES, OWN
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.list_offsets import ListOffsetsRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from support.batches import batch_of
from support.observed import INTERVAL_MS, Stage, value, values

PRODUCER = "org.apache.kafka.producer."
CONSUMER = "org.apache.kafka.consumer."


def produce(*batches: bytes, acks: int = 1, topics: int = 1) -> ProduceRequest:
    """A request with a batch for each partition of each topic."""
    partitions = [PartitionProduceData(index=index, records=batch) for index, batch in enumerate(batches)]
    topic = TopicProduceData(name="orders", topic_id=bytes(15) + b"t", partition_data=partitions)
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic] * topics)


def produced(*errors: int, throttle_ms: int = 0) -> ProduceResponse:
    """A response with an error code for each partition."""
    partitions = [PartitionProduceResponse(index=index, error_code=code) for index, code in enumerate(errors)]
    topic = TopicProduceResponse(name="orders", topic_id=bytes(15) + b"t", partition_responses=partitions)
    return ProduceResponse(responses=[topic], throttle_time_ms=throttle_ms)


def test_requests_and_bytes_are_exact_by_api_and_node() -> None:
    stage = Stage()
    one, two = stage.pair(node_id=1), stage.pair(node_id=2)
    sent = one.send(MetadataRequest(), 7) + one.send(MetadataRequest(), 7)
    received = one.answer(MetadataResponse(), 7) + one.answer(MetadataResponse(), 7)
    two.send(ListOffsetsRequest(), 5)

    points = stage.ended()[: len(ALL_NAMES) * 4]

    first = [point for point in points if point.time_ms == points[0].time_ms]
    assert values(first, OWN + "requests") == {("Metadata", "node-1"): 2, ("ListOffsets", "node-2"): 1}
    assert values(first, OWN + "request.bytes")["Metadata", "node-1"] == sent
    assert values(first, OWN + "response.bytes")["Metadata", "node-1"] == received


def test_a_window_counts_only_what_happened_in_it() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.exchange(MetadataRequest(), MetadataResponse(), 7)
    stage.clock.advance(INTERVAL_MS)
    assert value(stage.points(), OWN + "requests") == 1

    pair.exchange(MetadataRequest(), MetadataResponse(), 7)
    pair.exchange(MetadataRequest(), MetadataResponse(), 7)
    stage.clock.advance(INTERVAL_MS)

    assert value(stage.points(1), OWN + "requests") == 2
    first, second = (push.payload.data for push in stage.records)
    assert first != second


def test_windows_follow_each_other_without_a_gap() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.send(MetadataRequest(), 7)

    stage.clock.advance(5 * INTERVAL_MS)

    spans = [
        (point.raw.start_time_unix_nano, point.raw.time_unix_nano)
        for point in stage.points()
        if point.metric == OWN + "connections"
    ]
    assert len(spans) >= 4
    assert all(start < end for start, end in spans)
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]


def test_sums_are_deltas() -> None:
    stage = Stage()
    stage.pair().exchange(MetadataRequest(), MetadataResponse(), 7)

    points = stage.ended()

    sums = [point for point in points if point.kind in ("sum", "histogram")]
    assert sums
    assert all(point.delta for point in sums)


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12, 13])
def test_records_are_counted_by_batch_headers(version: int) -> None:
    stage = Stage()
    pair = stage.pair()
    batch = batch_of(b"a", b"b", b"c")

    for _ in range(3):
        pair.exchange(produce(batch), produced(0), version)

    points = stage.ended()
    assert values(points, OWN + "produce.records") == {("Produce", "node-1"): 9}
    assert values(points, OWN + "produce.batches") == {("Produce", "node-1"): 3}
    assert values(points, OWN + "produce.bytes") == {("Produce", "node-1"): 3 * len(batch)}
    assert values(points, OWN + "errors") == {}


@pytest.mark.parametrize("version", [7, 9, 13])
@pytest.mark.parametrize("piece_bytes", [1 << 20, 1, 40, 90, 700, 17_000])
def test_batches_of_all_sizes_are_counted_in_requests_with_many(version: int, piece_bytes: int) -> None:
    stage = Stage()
    pair = stage.pair()
    pair.head_bytes, pair.piece_bytes = max(piece_bytes, 14), piece_bytes
    sizes = (1, 100, 1_000, 16_250, 16_300, 20_000, 10, 500)
    batches = [batch_of(b"v" * size) for size in sizes]
    two = batch_of(b"a") + batch_of(b"b", b"c")
    request = produce(*batches, two, *batches)

    pair.exchange(request, produced(*[0] * 17), version)

    points = stage.ended()
    assert values(points, OWN + "produce.records") == {("Produce", "node-1"): 19}
    assert values(points, OWN + "produce.batches") == {("Produce", "node-1"): 18}
    total = 2 * sum(map(len, batches)) + len(two)
    assert values(points, OWN + "produce.bytes") == {("Produce", "node-1"): total}


def test_a_request_without_acks_has_no_response() -> None:
    stage = Stage()
    pair = stage.pair()

    for _ in range(2):
        pair.send(produce(batch_of(b"a"), acks=0), 7, answered=False)

    points = stage.ended()
    assert values(points, OWN + "acks0.requests") == {("Produce", "node-1"): 2}
    assert values(points, OWN + "produce.records") == {("Produce", "node-1"): 2}
    assert values(points, OWN + "latency") == {}


@pytest.mark.parametrize("version", [3, 5, 7, 8, 9, 13])
def test_the_error_of_each_partition_counts(version: int) -> None:
    stage = Stage()
    pair = stage.pair()
    batch = batch_of(b"a")

    pair.exchange(produce(batch, batch, batch), produced(6, 0, 6), version)
    pair.exchange(produce(batch), produced(10), version)

    assert values(stage.ended(), OWN + "errors") == {
        ("Produce", "NOT_LEADER_OR_FOLLOWER", "node-1"): 2,
        ("Produce", "MESSAGE_TOO_LARGE", "node-1"): 1,
    }


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_produce_throttle_time(version: int) -> None:
    stage = Stage()
    pair = stage.pair()
    for throttle_ms in (0, 300, 900):
        pair.exchange(produce(batch_of(b"a")), produced(0, throttle_ms=throttle_ms), version)

    points = stage.ended()

    assert value(points, PRODUCER + "produce.throttle.time.avg") == 400
    assert value(points, PRODUCER + "produce.throttle.time.max") == 900
    assert values(points, OWN + "throttle.time") == {("Produce", "node-1"): 1_200}


def test_node_latency_covers_all_requests_to_a_node() -> None:
    stage = Stage()
    pair = stage.pair(node_id=3)
    pair.exchange(produce(batch_of(b"a")), produced(0), 7, latency_ms=2)
    pair.exchange(MetadataRequest(), MetadataResponse(), 7, latency_ms=6)

    points = stage.ended()

    assert values(points, PRODUCER + "node.request.latency.avg") == {("node-3",): 4}
    assert values(points, PRODUCER + "node.request.latency.max") == {("node-3",): 6}


def test_a_latency_equal_to_a_bound_is_in_its_bucket() -> None:
    stage = Stage()
    pair = stage.pair()
    for latency_ms in (0.5, 1, 1.5, 60_000, 60_001):
        pair.exchange(MetadataRequest(), MetadataResponse(), 7, latency_ms=latency_ms)

    (point,) = [point for point in stage.ended() if point.metric == OWN + "latency"]

    assert list(point.raw.bucket_counts) == [2, 1, *[0] * 12, 1, 1]
    assert point.raw.count == 5
    assert point.raw.sum == 120_004
    assert point.raw.max == 60_001
    assert list(point.raw.explicit_bounds)[:3] == [1, 2, 5]


@pytest.mark.parametrize(
    ("request_", "response", "version"),
    [
        (FindCoordinatorRequest(), FindCoordinatorResponse(error_code=15), 0),
        (FindCoordinatorRequest(), FindCoordinatorResponse(error_code=15), 3),
        (FetchRequest(), FetchResponse(error_code=15), 7),
        (FetchRequest(), FetchResponse(error_code=15), 16),
        (InitProducerIdRequest(), InitProducerIdResponse(error_code=15), 4),
    ],
)
def test_top_level_errors(request_: object, response: object, version: int) -> None:
    stage = Stage()
    stage.pair().exchange(request_, response, version)

    found = values(stage.ended(), OWN + "errors")

    assert [error for _, error, _ in found] == ["COORDINATOR_NOT_AVAILABLE"]


def test_an_error_without_a_fixed_place_is_not_guessed() -> None:
    stage = Stage()
    stage.pair().exchange(FetchRequest(), FetchResponse(throttle_time_ms=70), 4)

    points = stage.ended()

    assert values(points, OWN + "errors") == {}
    assert values(points, OWN + "throttle.time") == {("Fetch", "node-1"): 70}


def test_requests_that_die_with_their_connection_are_errors() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.send(MetadataRequest(), 7)
    pair.send(produce(batch_of(b"a")), 7)
    pair.close("broker")

    points = stage.ended()

    assert values(points, OWN + "errors") == {
        ("Metadata", "disconnected", "node-1"): 1,
        ("Produce", "disconnected", "node-1"): 1,
    }
    assert values(points, OWN + "disconnects") == {("broker", "node-1"): 1}


def test_connections_are_exact() -> None:
    stage = Stage()
    pairs = [stage.pair(node_id=node_id) for node_id in (None, 1, 1, 2)]
    for pair in pairs:
        pair.exchange(produce(batch_of(b"a")), produced(0), 7)
    pairs[1].close()

    points = stage.ended()

    first = [point for point in points if point.time_ms == points[0].time_ms]
    assert values(first, OWN + "connections") == {("node--1",): 1, ("node-1",): 2, ("node-2",): 1}
    assert values(first, OWN + "connections.open") == {("node--1",): 1, ("node-1",): 1, ("node-2",): 1}
    assert value(first, PRODUCER + "connection.creation.total") == 4
    (rate,) = [point for point in first if point.metric == PRODUCER + "connection.creation.rate"]
    seconds = (rate.raw.time_unix_nano - rate.raw.start_time_unix_nano) / 1e9
    assert rate.value == pytest.approx(4 / seconds)
    assert value(first, OWN + "instances.seen") == 1


def test_requests_in_flight_are_those_of_one_connection() -> None:
    stage = Stage()
    one, two = stage.pair(), stage.pair()
    for _ in range(3):
        one.send(MetadataRequest(), 7)
    two.send(MetadataRequest(), 7)

    points = stage.ended()

    assert max(point.value for point in points if point.metric == OWN + "in.flight.max") == 3


def test_versions_are_those_of_the_last_requests() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.send(MetadataRequest(), 4)
    pair.send(MetadataRequest(), 7)

    assert values(stage.ended(), OWN + "api.version") == {("Metadata", "node-1"): 7}


def test_a_consumer_has_consumer_metrics_and_no_producer_metrics() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.exchange(FetchRequest(), FetchResponse(), 11, latency_ms=500)

    points = stage.ended()

    assert value(points, CONSUMER + "fetch.manager.fetch.latency.avg") == 500
    assert value(points, CONSUMER + "fetch.manager.fetch.latency.max") == 500
    assert values(points, OWN + "fetch.bytes").keys() == {("Fetch", "node-1")}
    assert not [point for point in points if point.metric.startswith(PRODUCER)]


def test_an_admin_client_has_only_our_own_names() -> None:
    stage = Stage()
    stage.pair().exchange(MetadataRequest(), MetadataResponse(), 7)

    assert {point.metric.startswith(OWN) for point in stage.ended()} == {True}


def test_requests_before_the_client_is_known_count_for_it() -> None:
    stage = Stage()
    pair = stage.pair(client_id="", principal="User:ANONYMOUS")
    pair.exchange(ApiVersionsRequest(), ApiVersionsResponse(), 3)
    pair.identity.client_id, pair.identity.principal = "orders", "User:alice"
    pair.exchange(MetadataRequest(), MetadataResponse(), 7)

    stage.clock.advance(INTERVAL_MS)

    (record,) = stage.records
    assert record.context.client_id == "orders"
    assert record.context.connection.principal == "User:alice"
    assert values(stage.points(), OWN + "requests") == {
        ("ApiVersions", "node-1"): 1,
        ("Metadata", "node-1"): 1,
    }


def test_a_connection_without_a_request_is_no_client() -> None:
    stage = Stage()
    stage.pair().close()

    assert not stage.ended()
    assert not stage.observation.clients


def test_a_transactional_producer_is_labeled() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.exchange(InitProducerIdRequest(transactional_id="tx-1"), InitProducerIdResponse(), 4)

    (point, *_) = stage.ended()

    assert point.resource == {"observed": "true", "transactional_id": "tx-1"}


def test_a_client_that_asks_for_telemetry_is_not_silent() -> None:
    stage = Stage()
    pair = stage.pair()
    pair.exchange(MetadataRequest(), MetadataResponse(), 7)
    pair.send(GetTelemetrySubscriptionsRequest(), 0, answered=False)

    assert not stage.ended()


@pytest.mark.parametrize("version", [3, 5, 8, 9, 12, 13])
def test_a_response_that_differs_from_the_last_one_is_read(version: int) -> None:
    stage = Stage()
    pair = stage.pair()
    responses = [
        produced(0),
        produced(0),
        produced(10),
        produced(0),
        produced(0, throttle_ms=5),
        produced(0, 7),
        produced(0),
    ]
    for response in responses:
        pair.exchange(produce(batch_of(b"a")), response, version)

    points = stage.ended()

    assert values(points, OWN + "errors") == {
        ("Produce", "MESSAGE_TOO_LARGE", "node-1"): 1,
        ("Produce", "REQUEST_TIMED_OUT", "node-1"): 1,
    }
    assert values(points, OWN + "throttle.time") == {("Produce", "node-1"): 5}

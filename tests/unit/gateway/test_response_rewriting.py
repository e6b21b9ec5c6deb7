"""Each response that names addresses, by the table of what is rewritten in it."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.gateway.rewriting.catalog import rewriter_for
from odradek.gateway.rewriting.nodes import MAX_NODES
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from odradek.wire.messages.fetch import FetchResponse, NodeEndpoint
from odradek.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from odradek.wire.messages.produce import NodeEndpoint as ProduceEndpoint
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.wire.messages.share_fetch import ShareFetchResponse
from support.rewriting import Advertised, frame_of, rewritten

HOST = "gateway.example.com"
UPSTREAM = "b1.upstream.internal"


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (0, 9), (1, 15), (2, 11), (8, 10), (11, 9), (15, 6), (18, 4), (32, 4), (55, 2), (68, 1), (69, 1),
        (77, 1), (88, 0), (89, 0), (90, 0), (1000, 0),
    ],
)  # fmt: skip
def test_a_response_without_an_address_to_rewrite_passes(api_key: int, version: int) -> None:
    assert rewriter_for(api_key, version, 100, Advertised(), HoldLimits()) is None


@pytest.mark.parametrize(
    ("api_key", "version"), [(0, 14), (1, 19), (3, 14), (10, 7), (60, 3), (78, 3), (79, 3)]
)
def test_a_version_whose_layout_is_not_known_is_malformed(api_key: int, version: int) -> None:
    rewriter = rewriter_for(api_key, version, 100, Advertised(), HoldLimits())

    assert rewriter is not None
    with pytest.raises(MalformedResponse, match=f"API {api_key} version {version} is not known"):
        rewriter.feed(memoryview(bytes(100)))


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_every_broker_with_its_advertised_address(version: int) -> None:
    addresses = Advertised(unmapped_from=7)
    brokers = [
        MetadataResponseBroker(
            node_id=node_id,
            host=f"b{node_id}.upstream.internal",
            port=9092,
            rack="a" if version >= 1 and node_id else None,
        )
        for node_id in (2, 1, 7, 0)
    ]
    topics = [MetadataResponseTopic(name="t")]
    controller_id = 7 if version >= 1 else -1

    result = rewritten(
        MetadataResponse(brokers=brokers, topics=topics, controller_id=controller_id), version, addresses
    )

    assert [(broker.node_id, broker.host, broker.port) for broker in result.brokers] == [
        (2, HOST, 9002), (1, HOST, 9001), (0, HOST, 9000),
    ]  # fmt: skip
    assert [broker.rack for broker in result.brokers] == (["a", "a", None] if version >= 1 else [None] * 3)
    assert (result.controller_id, result.topics) == (controller_id, topics)
    assert addresses.noted == [(node_id, f"b{node_id}.upstream.internal", 9092) for node_id in (2, 1, 7, 0)]


@pytest.mark.parametrize("version", range(14))
def test_metadata_leaves_before_its_topics_have_come(version: int) -> None:
    brokers = [MetadataResponseBroker(node_id=1, host=UPSTREAM, port=9092)]
    topics = [MetadataResponseTopic(name=f"topic-{number}") for number in range(100)]
    frame = memoryview(frame_of(MetadataResponse(brokers=brokers, topics=topics), version))
    rewriter = rewriter_for(3, version, len(frame), Advertised(), HoldLimits())
    assert rewriter is not None

    first = b"".join(rewriter.feed(frame[:200]))
    second = rewriter.feed(frame[200:])

    assert HOST.encode() in first
    assert int.from_bytes(first[:4]) == len(first) - 4 + len(frame) - 200
    assert [bytes(piece) for piece in second] == [bytes(frame[200:])]


def test_brokers_that_do_not_fit_into_the_bound_are_malformed() -> None:
    brokers = [MetadataResponseBroker(node_id=node_id, host=UPSTREAM * 10) for node_id in range(100)]
    frame = memoryview(frame_of(MetadataResponse(brokers=brokers), 13))
    rewriter = rewriter_for(3, 13, len(frame), Advertised(), HoldLimits(response_bytes=1000))
    assert rewriter is not None

    rewriter.feed(frame[:900])
    with pytest.raises(MalformedResponse, match="do not end within 1000 bytes"):
        rewriter.feed(frame[900:1100])


def test_more_brokers_than_a_cluster_has_are_malformed() -> None:
    frame = memoryview(bytes(4) + bytes(4) + (MAX_NODES + 1).to_bytes(4) + bytes(1000))
    rewriter = rewriter_for(3, 8, 2**31 - 1, Advertised(), HoldLimits())
    assert rewriter is not None

    with pytest.raises(MalformedResponse, match=f"{MAX_NODES + 1} nodes are more"):
        rewriter.feed(frame)


@pytest.mark.parametrize("version", range(4))
def test_one_coordinator_has_its_advertised_address(version: int) -> None:
    found = FindCoordinatorResponse(node_id=1, host=UPSTREAM, port=9092)

    result = rewritten(found, version, addresses := Advertised())

    assert (result.node_id, result.host, result.port) == (1, HOST, 9001)
    assert addresses.noted == [(1, UPSTREAM, 9092)]


@pytest.mark.parametrize("version", range(4))
def test_a_coordinator_without_an_advertised_address_is_not_available(version: int) -> None:
    found = FindCoordinatorResponse(node_id=1, host=UPSTREAM, port=9092)

    result = rewritten(found, version, Advertised(unmapped_from=0))

    assert (result.error_code, result.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    assert (result.host, result.port) == ("", -1)
    assert result.error_message == ("The coordinator is not available." if version else "")


@pytest.mark.parametrize("version", range(4))
def test_an_error_of_find_coordinator_passes_unchanged(version: int) -> None:
    refused = FindCoordinatorResponse(node_id=-1, host="", port=-1, error_code=ErrorCode.NOT_COORDINATOR)

    assert rewritten(refused, version, addresses := Advertised(unmapped_from=-1)) == refused
    assert addresses.noted == []


@pytest.mark.parametrize("version", range(4, 7))
def test_each_key_has_the_address_of_its_coordinator(version: int) -> None:
    keys = [
        Coordinator(key="a", node_id=2, host=UPSTREAM, port=1, error_message=None),
        Coordinator(
            key="b", node_id=-1, host="", port=-1, error_code=ErrorCode.INVALID_REQUEST, error_message="x"
        ),
        Coordinator(key="c", node_id=3, host=UPSTREAM, port=2),
    ]

    result = rewritten(FindCoordinatorResponse(coordinators=keys), version, Advertised(unmapped_from=3))

    unavailable = Coordinator(
        key="c",
        node_id=-1,
        host="",
        port=-1,
        error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
        error_message="The coordinator is not available.",
    )
    first = Coordinator(key="a", node_id=2, host=HOST, port=9002, error_message=None)
    assert result.coordinators == [first, keys[1], unavailable]


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_names_fenced_brokers_too(version: int) -> None:
    brokers = [
        DescribeClusterBroker(broker_id=node_id, host=UPSTREAM, port=9092, rack="r", is_fenced=version >= 2)
        for node_id in (1, 2, 3)
    ]
    upstream = DescribeClusterResponse(brokers=brokers, cluster_id="c", controller_id=3, error_message="m")

    result = rewritten(upstream, version, Advertised(unmapped_from=3))

    assert [(broker.broker_id, broker.host, broker.port) for broker in result.brokers] == [
        (1, HOST, 9001), (2, HOST, 9002),
    ]  # fmt: skip
    assert {(broker.rack, broker.is_fenced) for broker in result.brokers} == {("r", version >= 2)}
    assert (result.cluster_id, result.controller_id, result.error_message) == ("c", 3, "m")


ENDPOINTS = [
    (ProduceResponse, ProduceEndpoint, range(10, 14)),
    (FetchResponse, NodeEndpoint, range(16, 19)),
    (ShareFetchResponse, NodeEndpoint, range(1, 3)),
    (ShareAcknowledgeResponse, NodeEndpoint, range(1, 3)),
]


@pytest.mark.parametrize(
    ("cls", "endpoint", "version"),
    [(cls, endpoint, version) for cls, endpoint, versions in ENDPOINTS for version in versions],
)
def test_the_endpoints_of_leaders_are_rewritten(cls: Any, endpoint: Any, version: int) -> None:
    nodes = [endpoint(node_id=node_id, host=UPSTREAM, port=9092, rack="r") for node_id in (1, 2, 3)]

    result = rewritten(cls(node_endpoints=nodes), version, addresses := Advertised(unmapped_from=3))

    assert result.node_endpoints == [
        endpoint(node_id=1, host=HOST, port=9001, rack="r"),
        endpoint(node_id=2, host=HOST, port=9002, rack="r"),
    ]
    assert addresses.noted == [(node_id, UPSTREAM, 9092) for node_id in (1, 2, 3)]


@pytest.mark.parametrize("cls", [ProduceResponse, FindCoordinatorResponse, DescribeClusterResponse])
def test_a_response_larger_than_the_bound_is_refused_before_it_is_held(cls: Any) -> None:
    rewriter = rewriter_for(
        cls.API_KEY, cls.VERSIONS.last, 5000, Advertised(), HoldLimits(response_bytes=4999)
    )

    assert rewriter is not None
    with pytest.raises(MalformedResponse, match="5000 bytes are more than 4999"):
        rewriter.feed(memoryview(bytes(10)))


@pytest.mark.parametrize(
    "cls", [ProduceResponse, FindCoordinatorResponse, DescribeClusterResponse, FetchResponse]
)
def test_bytes_after_the_message_are_malformed(cls: Any) -> None:
    version = cls.VERSIONS.last
    frame = frame_of(cls(), version) + b"b1.upstream.internal"
    rewriter = rewriter_for(cls.API_KEY, version, len(frame), Advertised(), HoldLimits())

    assert rewriter is not None
    with pytest.raises(MalformedResponse):
        rewriter.feed(memoryview(frame))


@pytest.mark.parametrize("error_code", [0, 6, -1])
def test_what_a_rewriter_has_read_can_be_accounted(error_code: int) -> None:
    partition = PartitionProduceResponse(error_code=error_code)
    topics = [TopicProduceResponse(partition_responses=[PartitionProduceResponse(), partition])]
    frame = frame_of(ProduceResponse(responses=topics, throttle_time_ms=250), 13)
    rewriter = rewriter_for(0, 13, len(frame), Advertised(), HoldLimits())
    assert rewriter is not None

    rewriter.feed(memoryview(frame))

    assert (rewriter.error_code, rewriter.throttle_ms) == (error_code, 250)


def test_unknown_tags_of_nodes_pass() -> None:
    """Tag 3 of a broker, with content."""
    broker = (1).to_bytes(4) + b"\x02b" + (9092).to_bytes(4) + b"\0" + b"\x01\x03\x02hi"
    rest = b"\x02c" + bytes(4) + b"\x01" + bytes(2) + b"\0"
    frame = bytes(4) + b"\0" + bytes(4) + b"\x02" + broker + rest
    rewriter = rewriter_for(3, 13, len(frame), Advertised("gate"), HoldLimits())
    assert rewriter is not None

    out = b"".join(rewriter.feed(memoryview(frame)))

    rewritten_broker = broker[:4] + b"\x05gate" + (9001).to_bytes(4) + b"\0" + b"\x01\x03\x02hi"
    assert out[4:] == frame[:9] + b"\x02" + rewritten_broker + rest

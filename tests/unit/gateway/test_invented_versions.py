"""A new version of an API is a declared field: the gateway rewrites and reads it without a change."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any

import pytest

from odradek.gateway import produce_beginning
from odradek.gateway.observation import produce_response
from odradek.gateway.observation.names import OWN
from odradek.gateway.rewriting.catalog import ADDRESSED, rewriter_for
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.gateway.throttling.throttle_writer import Unchanged, with_throttle_time
from odradek.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from odradek.wire.messages.produce import (
    NodeEndpoint as ProduceEndpoint,
)
from odradek.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from odradek.wire.types import Int64, String, between, since, tag
from support.batches import batch_of
from support.gateway_pair import Through, bare, request, response
from support.observed import Stage, totals
from support.rewriting import STREAMED, USUAL, Advertised, expected, fed, frame_of, message_of, pieces

HOST = "b1.upstream.internal"


class NextPartition(PartitionData):
    warmth: Annotated[Int64, since(19)] = 0
    remark: Annotated[String | None, tag(9, since(19))] = None


class NextTopic(FetchableTopicResponse):
    partitions: list[NextPartition] = field(default_factory=list)  # type: ignore[assignment]
    kinds: Annotated[list[String], since(19)] = field(default_factory=list)


class NextFetch(FetchResponse, versions=between(4, 19)):
    responses: list[NextTopic] = field(default_factory=list)  # type: ignore[assignment]
    mood: Annotated[String, since(19)] = ""


class NextStored(PartitionProduceResponse):
    warmth: Annotated[Int64, since(14)] = 0


class NextStoredTopic(TopicProduceResponse):
    partition_responses: list[NextStored] = field(default_factory=list)  # type: ignore[assignment]


class NextProduce(ProduceResponse, versions=between(3, 14)):
    responses: list[NextStoredTopic] = field(default_factory=list)  # type: ignore[assignment]
    mood: Annotated[String, since(14)] = ""


class NextBroker(MetadataResponseBroker):
    site: Annotated[String, since(14)] = ""


class NextMetadata(MetadataResponse, versions=between(0, 14)):
    brokers: list[NextBroker] = field(default_factory=list)  # type: ignore[assignment]


class NextCoordinator(Coordinator):
    site: Annotated[String, since(7)] = ""


class NextFindCoordinator(FindCoordinatorResponse, versions=between(0, 7)):
    coordinators: Annotated[list[NextCoordinator], since(4)] = field(default_factory=list)  # type: ignore[assignment]


class NextSentPartition(PartitionProduceData):
    hint: Annotated[String, since(14)] = ""


class NextSentTopic(TopicProduceData):
    partition_data: list[NextSentPartition] = field(default_factory=list)  # type: ignore[assignment]


class NextProduceRequest(ProduceRequest, versions=between(3, 14)):
    topic_data: list[NextSentTopic] = field(default_factory=list)  # type: ignore[assignment]
    reason: Annotated[String, since(14)] = ""


MOVED = NextPartition(
    error_code=6,
    current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
    records=b"r" * 500,
    warmth=-7,
    remark="r" * 200,
)
INVENTED: list[Any] = [
    NextFetch(
        throttle_time_ms=40,
        responses=[NextTopic(partitions=[NextPartition(warmth=5), MOVED], kinds=["a", "b" * 300])] * 3,
        mood="fine",
        node_endpoints=[NodeEndpoint(node_id=1, host=HOST, port=9092)],
    ),
    NextProduce(
        throttle_time_ms=40,
        responses=[NextStoredTopic(partition_responses=[NextStored(warmth=1), NextStored(error_code=6)])],
        mood="fine",
        node_endpoints=[ProduceEndpoint(node_id=1, host=HOST, port=9092)],
    ),
    NextMetadata(
        throttle_time_ms=40,
        brokers=[NextBroker(node_id=1, host=HOST, port=9092, rack="r", site="north")] * 3,
        cluster_id="c",
    ),
    NextFindCoordinator(
        throttle_time_ms=40,
        coordinators=[NextCoordinator(key="k", node_id=1, host=HOST, port=9092, error_code=6, site="north")],
    ),
]


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only change: other declarations."""
    for message in INVENTED:
        api = ADDRESSED[message.API_KEY]
        monkeypatch.setitem(ADDRESSED, message.API_KEY, replace(api, response=type(message), layouts={}))


@pytest.mark.parametrize("message", INVENTED, ids=lambda message: type(message).__name__)
@pytest.mark.parametrize("limits", [USUAL, STREAMED], ids=["held", "streamed"])
@pytest.mark.parametrize("every", [1, 100, 100_000])
def test_an_invented_version_is_rewritten_and_read(message: Any, limits: Any, every: int) -> None:
    version, addresses = message.VERSIONS.last, Advertised("g")
    frame = frame_of(message, version)
    rewriter = rewriter_for(message.API_KEY, version, len(frame), addresses, limits)
    assert rewriter is not None

    out = fed(rewriter, pieces(frame, range(every, len(frame), every)))

    wanted = expected(message_of(type(message), version, frame), version, addresses)
    assert message_of(type(message), version, out) == wanted
    assert HOST.encode() not in out
    assert rewriter.throttle_ms == 40
    assert rewriter.error_code == (0 if isinstance(message, MetadataResponse) else 6)


@pytest.mark.parametrize("message", INVENTED, ids=lambda message: type(message).__name__)
def test_a_throttle_time_is_written_into_an_invented_version(message: Any) -> None:
    version = message.VERSIONS.last
    frame = frame_of(message, version)

    out = fed(with_throttle_time(type(message), version, Unchanged(len(frame)), 500), pieces(frame, [9, 70]))

    wanted = message_of(type(message), version, frame)
    wanted.throttle_time_ms = 500
    assert message_of(type(message), version, out) == wanted


@pytest.mark.parametrize("cut", [30, 200, 400, 100_000])
def test_an_invented_version_of_produce_is_counted(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    monkeypatch.setattr(produce_beginning, "REQUEST", NextProduceRequest)
    monkeypatch.setattr(produce_response, "RESPONSE", NextProduce)
    stage = Stage()
    through = Through(observer=stage.observation)
    batch = batch_of(b"v" * 100, b"v")
    partitions = [NextSentPartition(records=batch, hint="warm")] * 3
    message = NextProduceRequest(acks=1, topic_data=[NextSentTopic(partition_data=partitions)], reason="none")
    sent = request(message, 14, 1)

    through.send(sent[:cut])
    through.send(sent[cut:])
    through.reply(response(replace(INVENTED[1], node_endpoints=[]), 14, 1))
    stage.observation.stop()

    points = stage.points()
    assert totals(points, OWN + "produce.records") == 6
    assert totals(points, OWN + "produce.bytes") == 3 * len(batch)
    assert totals(points, OWN + "errors") == 1
    assert totals(points, OWN + "throttle.time") == 40


def test_an_invented_version_without_an_address_passes_in_one_piece() -> None:
    through = Through()
    frame = response(NextFetch(responses=[NextTopic(partitions=[MOVED], kinds=["a"])], mood="fine"), 19, 1)
    through.send(bare(1, 19, 1, b"\0"))

    through.reply(frame)

    assert through.received == frame
    assert not through.path.meter.rewritten


@pytest.mark.parametrize("message", INVENTED, ids=lambda message: type(message).__name__)
def test_the_version_after_it_is_not_known(message: Any) -> None:
    rewriter = rewriter_for(message.API_KEY, message.VERSIONS.last + 1, 100, Advertised(), USUAL)

    assert rewriter is not None
    with pytest.raises(MalformedResponse, match="is not known"):
        rewriter.feed(memoryview(bytes(100)))

"""Chunks do not matter: any cut of both streams of a pair gives the same result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from odradek.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from support.examples import examples
from support.gateway_pair import HEARTBEAT, Through, answer, bare, request, response


@dataclass(frozen=True)
class Exchange:
    """One request and its responses."""

    request: bytes
    upstream: bytes | None = None
    """The broker's response; None if there is none."""
    client: bytes | None = None
    """The client's response; None for the broker's."""
    is_local: bool = False


def plain(correlation_id: int, size: int) -> Exchange:
    return Exchange(bare(HEARTBEAT, 3, correlation_id, b"q" * size), answer(correlation_id, b"r" * size))


def silent(correlation_id: int, size: int) -> Exchange:
    return Exchange(request(ProduceRequest(acks=0, transactional_id="t" * size), 9, correlation_id))


def push(correlation_id: int, size: int) -> Exchange:
    frame = bare(72, 0, correlation_id, b"m" * size)
    return Exchange(frame, client=answer(correlation_id, b"local"), is_local=True)


def metadata(correlation_id: int, size: int) -> Exchange:
    theirs = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h" * (size + 1), port=9092)])
    ours = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="gate", port=19001)])
    return Exchange(
        bare(3, 5, correlation_id, b"q" * size),
        response(theirs, 5, correlation_id),
        response(ours, 5, correlation_id),
    )


def api_versions(correlation_id: int, _size: int) -> Exchange:
    theirs = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, max_version=4)])
    telemetry = [ApiVersion(api_key=71), ApiVersion(api_key=72)]
    ours = ApiVersionsResponse(api_keys=[*theirs.api_keys, *telemetry])
    return Exchange(
        request(ApiVersionsRequest(client_software_name="n"), 3, correlation_id),
        response(theirs, 3, correlation_id),
        response(ours, 3, correlation_id),
    )


def fetch(correlation_id: int, size: int) -> Exchange:
    """The usual response, which no rewriter gets if it arrives whole."""
    found = fetched(PartitionData(records=b"r" * size))
    return Exchange(bare(1, 17, correlation_id, b"q" * size), response(found, 17, correlation_id))


def moved(correlation_id: int, size: int) -> Exchange:
    """A response about a partition that has moved, with the address of its leader."""
    partition = PartitionData(error_code=6, current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2))
    theirs, ours = (
        fetched(partition, node_endpoints=[NodeEndpoint(node_id=1, host=host, port=port)])
        for host, port in (("h" * (size + 1), 9092), ("gate", 19001))
    )
    return Exchange(
        bare(1, 17, correlation_id, b"q" * size),
        response(theirs, 17, correlation_id),
        response(ours, 17, correlation_id),
    )


def fetched(partition: PartitionData, **fields: Any) -> FetchResponse:
    return FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])], **fields)


def produce(correlation_id: int, size: int) -> Exchange:
    """As `fetch`."""
    sent = ProduceRequest(acks=1, transactional_id="t" * (size % 3))
    topic = TopicProduceResponse(name="n" * size, partition_responses=[PartitionProduceResponse()])
    stored = ProduceResponse(responses=[topic])
    return Exchange(request(sent, 12, correlation_id), response(stored, 12, correlation_id))


Kind = Callable[[int, int], Exchange]
KINDS: st.SearchStrategy[Kind] = st.sampled_from(
    [plain, silent, push, metadata, api_versions, fetch, moved, produce]
)
CONVERSATIONS = st.lists(st.tuples(KINDS, st.integers(0, 40)), min_size=1, max_size=12)


def parts(data: st.DataObject, stream: bytes) -> list[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    ends = [*cuts, len(stream)]
    return [stream[start:end] for start, end in zip([0, *cuts], ends, strict=True) if start < end]


@settings(max_examples=examples(300), deadline=None)
@given(conversation=CONVERSATIONS, at_once=st.booleans(), data=st.data())
def test_any_cut_of_both_streams_gives_the_same_result(
    conversation: list[tuple[Kind, int]], at_once: bool, data: st.DataObject
) -> None:
    exchanges = [kind(number, size) for number, (kind, size) in enumerate(conversation)]
    through = Through(at_once=at_once)

    for part in parts(data, b"".join(each.request for each in exchanges)):
        through.send(part)
    for part in parts(data, b"".join(each.upstream or b"" for each in exchanges)):
        through.reply(part)
        asked = len(through.answers.asked)
        ready = data.draw(st.integers(-1, asked - 1))
        if ready >= 0:
            through.answers.finish(ready)
    while through.answers.asked:
        through.answers.finish()

    assert through.cause is None
    assert through.sent == b"".join(each.request for each in exchanges if not each.is_local)
    assert through.received == b"".join(each.client or each.upstream or b"" for each in exchanges)
    assert through.pair.is_idle

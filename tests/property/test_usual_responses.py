"""A response that passes without its rewriter would leave it as it is."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.rewriting.catalog import ADDRESSED, rewriter_for
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchResponse, NodeEndpoint, PartitionData
from odradek.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from support.examples import examples
from support.rewriting import Advertised, fed, frame_of

ENDPOINTS = [NodeEndpoint(node_id=1, host="b1.upstream.internal", port=9092)]


@st.composite
def responses(draw: st.DrawFn) -> tuple[Any, int]:
    """A nearly usual response, and its version."""
    endpoints: Any = draw(st.sampled_from([[], ENDPOINTS]))
    partitions, topics = draw(st.sampled_from([1, 1, 1, 0, 2, 5])), draw(st.sampled_from([1, 1, 0, 2]))
    if draw(st.booleans()):
        partition = PartitionData(records=draw(st.sampled_from([None, b"", b"\0" * 50, b"r" * 200])))
        topic = FetchableTopicResponse(partitions=[partition] * partitions)
        return FetchResponse(responses=[topic] * topics, node_endpoints=endpoints), draw(st.integers(16, 18))
    stored = TopicProduceResponse(
        name=draw(st.sampled_from(["", "orders", "n" * 127, "n" * 200])),
        partition_responses=[PartitionProduceResponse()] * partitions,
    )
    return ProduceResponse(responses=[stored] * topics, node_endpoints=endpoints), draw(st.integers(10, 13))


@settings(max_examples=examples(500), deadline=None)
@given(made=responses(), data=st.data())
def test_a_response_that_passes_names_no_address(made: tuple[Any, int], data: st.DataObject) -> None:
    message, version = made
    frame = bytearray(frame_of(message, version))
    for _ in range(data.draw(st.integers(0, 2))):
        frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 3, 127, 128, 255])
        )
    cut = bytes(frame[: data.draw(st.sampled_from([len(frame), len(frame), len(frame) - 1]))])

    see = ADDRESSED[message.API_KEY].see(version)
    assert see is not None
    seen = see(b"before" + cut + b"after", 6, 6 + len(cut))

    if seen is not None:
        rewriter = rewriter_for(message.API_KEY, version, len(cut), Advertised(), HoldLimits())
        assert rewriter is not None
        assert fed(rewriter, [memoryview(cut)]) == cut
        assert (rewriter.error_code, rewriter.throttle_ms) == (seen.error_code, seen.throttle_ms)

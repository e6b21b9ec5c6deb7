"""The sums of an observed pair do not depend on the pieces in which its bytes arrive."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.observation.names import OWN
from odradek.gateway.pair_failure import Cause
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from odradek.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
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
from support.examples import examples
from support.gateway_pair import Through, request, response
from support.observed import Stage, values

VERSIONS = {"produce": 13, "silent": 13, "transactional": 13, "by name": 12, "old": 8}
"""Of Produce requests of each kind."""
KINDS = st.tuples(
    st.sampled_from([*VERSIONS, "fetch", "heartbeat", "metadata"]), st.integers(0, 3), st.booleans()
)


def exchange_of(kind: str, size: int, is_bad: bool, number: int) -> tuple[bytes, bytes]:
    """A request and its response, which has an error if it can."""
    batch = batch_of(*[b"v" * 10 ** (size + 1)] * (size + 1))
    if kind in VERSIONS:
        version = VERSIONS[kind]
        partitions = [PartitionProduceData(index=index, records=batch) for index in range(1 + size // 3)]
        topic = TopicProduceData(name="t" * (1 + size), topic_id=bytes(16), partition_data=partitions)
        transactional_id = "t" * size if kind == "transactional" else None
        sent = ProduceRequest(
            acks=int(kind != "silent"), transactional_id=transactional_id, topic_data=[topic]
        )
        answers = [PartitionProduceResponse(error_code=6 * is_bad)]
        received = ProduceResponse(responses=[TopicProduceResponse(partition_responses=answers)])
        return request(sent, version, number), response(received, version, number) if sent.acks else b""
    if kind == "fetch":
        return request(FetchRequest(), 12, number), response(FetchResponse(), 12, number)
    if kind == "heartbeat":
        answer = HeartbeatResponse(error_code=25 * is_bad)
        return request(HeartbeatRequest(), 4, number), response(answer, 4, number)
    return request(MetadataRequest(), 7, number), response(MetadataResponse(), 7, number)


def in_pieces(data: st.DataObject, stream: bytes) -> list[bytes]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def sums(asked: list[bytes], answered: list[bytes]) -> dict[str, Any]:
    """The sums of an observed pair through which these pieces pass."""
    stage = Stage()
    through = Through(observer=stage.observation, monotonic_ns=lambda: 0)
    for piece in asked:
        through.pair.from_client(piece)
    for piece in answered:
        through.pair.from_upstream(piece)
    assert through.cause is None
    through.pair.close(Cause.CLIENT)
    stage.observation.stop()
    points = stage.points()
    names = (
        "requests", "request.bytes", "response.bytes", "errors", "produce.records", "produce.batches",
        "produce.bytes", "acks0.requests", "in.flight.max",
    )  # fmt: skip
    return {name: values(points, OWN + name) for name in names}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(KINDS, min_size=1, max_size=12), st.data())
def test_a_pair_observes_the_same_in_all_pieces(
    steps: list[tuple[str, int, bool]], data: st.DataObject
) -> None:
    made = [exchange_of(*step, number) for number, step in enumerate(steps)]
    asked, answered = [each[0] for each in made], [each[1] for each in made if each[1]]

    one_by_one = sums(asked, answered)
    in_any_pieces = sums(in_pieces(data, b"".join(asked)), in_pieces(data, b"".join(answered)))

    assert in_any_pieces == one_by_one
    assert sum(one_by_one["requests"].values()) == len(steps)
    assert sum(one_by_one["request.bytes"].values()) == sum(map(len, asked))
    assert sum(one_by_one["response.bytes"].values()) == sum(map(len, answered))
    records = [(1 + size) * (1 + size // 3) for kind, size, _ in steps if kind in VERSIONS]
    assert sum(one_by_one["produce.records"].values()) == sum(records)
    silent = sum(kind == "silent" for kind, _, _ in steps)
    assert sum(one_by_one["acks0.requests"].values()) == silent

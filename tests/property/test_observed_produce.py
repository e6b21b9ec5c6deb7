"""Sums over windows are what passed, however the frames are cut and the windows lie."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.gateway.observation.names import OWN
from odradek.gateway.observation.pair_account import PairAccount
from odradek.gateway.pair_failure import PairFailure
from odradek.gateway.produce_beginning import (
    BY_ID,
    ProduceBeginning,
    batches_walk,
    counted,
    first_topic,
    nearest,
    read_acks,
)
from odradek.gateway.produce_requests import BatchReader
from odradek.wire.codec import encode
from odradek.wire.compression import Codec
from odradek.wire.header import RequestHeader, request_header
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse
from odradek.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.batches import batch_of
from support.examples import examples
from support.gateway_pair import Through, request
from support.observed import INTERVAL_MS, Stage, totals


@dataclass
class Expected:
    records: int = 0
    batches: int = 0
    bytes: int = 0


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes | None, Expected]:
    """The batches of one partition."""
    sizes = draw(st.lists(st.integers(1, 4), max_size=2))
    if not sizes:
        return draw(st.sampled_from([None, b""])), Expected()
    codec = draw(st.sampled_from([Codec.NONE, Codec.GZIP]))
    value = b"v" * draw(st.integers(0, 300))
    made = [batch_of(*[value] * size, codec=codec) for size in sizes]
    whole = b"".join(made)
    return whole, Expected(sum(sizes), len(sizes), len(whole))


@st.composite
def requests(draw: st.DrawFn) -> tuple[ProduceRequest, Expected]:
    """A Produce request, and what is in it."""
    expected = Expected()
    topics = []
    for topic in range(draw(st.integers(0, 3))):
        partitions = []
        for index, (records, found) in enumerate(draw(st.lists(batches(), max_size=3))):
            partitions.append(PartitionProduceData(index=index, records=records))
            expected.records += found.records
            expected.batches += found.batches
            expected.bytes += found.bytes
        topics.append(
            TopicProduceData(
                name=f"topic-{topic}", topic_id=bytes(15) + bytes([topic]), partition_data=partitions
            )
        )
    transactional = draw(st.sampled_from([None, "tx", "t" * 200]))
    acks = draw(st.sampled_from([0, 1, -1]))
    return ProduceRequest(transactional_id=transactional, acks=acks, topic_data=topics), expected


@settings(max_examples=examples(300), deadline=None)
@given(requests(), st.integers(3, 13), st.sampled_from(["", "orders", "c" * 300]), st.data())
def test_a_request_in_pieces_has_the_same_sums(
    made: tuple[ProduceRequest, Expected], version: int, client_id: str, data: st.DataObject
) -> None:
    message, expected = made
    header = RequestHeader(0, version, 7, client_id)
    frame = request_header(header, version in ProduceRequest.FLEXIBLE) + encode(message, version)
    found = read_acks(b"len." + frame, 4, len(frame), version)
    assert found is not None
    assert found[0] == message.acks
    cuts = sorted(data.draw(st.lists(st.integers(found[1], len(frame)), max_size=6)))
    told: list[tuple[int, int, int]] = []

    reader = BatchReader(lambda *sums: told.append(sums), version, len(frame), found[1])
    for start, end in zip([0, *cuts], [*cuts, len(frame)], strict=True):
        reader(memoryview(frame)[start:end])

    assert told == [(expected.records, expected.batches, expected.bytes)]
    walk = batches_walk(nearest(version))
    *sums, topics = counted(walk, frame + b"more", found[1], len(frame))
    assert sums == list(told[0])
    names = [each.topic_id if version >= BY_ID else each.name.encode() for each in message.topic_data]
    assert [name for name, *_ in topics] == names
    assert [sum(each) for each in zip(*(sums for _, *sums in topics), strict=True)] == (sums if names else [])
    assert first_topic(frame, found[1], version) == ((names[0], len(names) == 1) if names else None)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(requests(), min_size=1, max_size=3), st.integers(3, 13), st.data())
def test_requests_in_chunks_have_the_same_sums(
    made: list[tuple[ProduceRequest, Expected]], version: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(made), min_size=1, max_size=8))
    sent = b"".join(request(message, version, number) for number, (message, _) in enumerate(chosen))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    stage = Stage()
    through = Through(observer=stage.observation)

    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        through.send(sent[start:end])

    assert through.sent == sent
    account = through.pair.state.observer
    assert isinstance(account, PairAccount)
    (row,) = account.rows.values()
    produced = row.produced
    assert produced is not None
    found = (row.requests, row.request_bytes, produced.records, produced.batches, produced.bytes)
    assert found == (
        len(chosen),
        len(sent),
        sum(expected.records for _, expected in chosen),
        sum(expected.batches for _, expected in chosen),
        sum(expected.bytes for _, expected in chosen),
    )
    assert produced.acks0 == sum(message.acks == 0 for message, _ in chosen)


@settings(max_examples=examples(300), deadline=None)
@given(st.binary(min_size=12, max_size=200), st.integers(0, 14), st.integers(12, 200))
def test_bytes_that_are_no_request_raise_nothing(data: bytes, version: int, cut: int) -> None:
    beginning = ProduceBeginning()
    chunk = len(data).to_bytes(4) + data[:cut]

    try:
        if beginning.read(chunk, 4, len(data), version):
            return
    except PairFailure:
        return
    _, batches, size_bytes, _ = counted(batches_walk(nearest(version)), data, beginning.end, len(data))

    assert min(batches, size_bytes) >= 0


STEP = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 2 * INTERVAL_MS)),
    st.tuples(st.just("produce"), st.integers(0, 3)),
    st.tuples(st.just("ask"), st.integers(0, 3)),
    st.tuples(st.just("reconnect"), st.integers(0, 3)),
    st.tuples(st.just("subscribe"), st.sampled_from([1_000, 5_000, INTERVAL_MS])),
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(STEP, max_size=25), st.integers(1, 4))
def test_sums_over_windows_are_what_passed(steps: list[tuple[str, int]], max_clients: int) -> None:
    stage = Stage(max_clients=max_clients)
    pairs = [stage.pair(f"client-{number % 3}", node_id=number % 2) for number in range(4)]
    batch = batch_of(b"a", b"b")
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=batch)])
    request = ProduceRequest(acks=1, topic_data=[topic])
    asked = sent = received = records = opened = 0
    used = [False] * 4

    for what, number in steps:
        if what == "wait":
            stage.clock.advance(number)
        elif what == "subscribe":
            stage.subscribe("*", interval_ms=number)
        elif what == "reconnect":
            pairs[number].close()
            pairs[number] = stage.pair(f"client-{number % 3}", node_id=number % 2)
            used[number] = False
        else:
            opened += not used[number]
            used[number] = True
            asked += 1
            if what == "produce":
                sent += pairs[number].send(request, 7)
                received += pairs[number].answer(ProduceResponse(), 7)
                records += 2
            else:
                sent += pairs[number].send(MetadataRequest(), 7)
                received += pairs[number].answer(MetadataResponse(), 7)
    stage.observation.stop()

    points = stage.points()
    assert totals(points, OWN + "requests") == asked
    assert totals(points, OWN + "request.bytes") == sent
    assert totals(points, OWN + "response.bytes") == received
    assert totals(points, OWN + "produce.records") == records
    assert totals(points, OWN + "connections") == opened
    assert sum(point.raw.count for point in points if point.metric == OWN + "latency") == asked
    assert stage.source.accounts.balanced

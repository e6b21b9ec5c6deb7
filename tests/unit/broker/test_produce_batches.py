"""Large batches are validated elsewhere; what one request may do on the event loop is bounded."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from odradek.broker import produce_batches
from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.produce_batches import WORK_BYTES, ProduceBatches
from odradek.log import log_validator
from odradek.log.batch_work import BatchesWork
from odradek.log.log_validator import OpeningBudget, PreparedBatch
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec, compress, decompress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.record import MIN_RECORD_BYTES, Record
from odradek.wire.record_batch import build_batch
from support.batches import NOW_MS, altered, batch_of, values_from
from support.broker import BrokerClient, make_broker
from support.data_requests import produce_request

INLINE_BYTES = BrokerSettings().produce_inline_bytes
SCANNING = 200
"""As without odradek-speed."""
INLINE_RECORDS = INLINE_BYTES // SCANNING
COUNT = INLINE_RECORDS + 1
VALUES = [b"v" * (number % 3) for number in range(COUNT)]
LARGE = build_batch([Record(b"k", value, NOW_MS) for value in VALUES], codec=Codec.ZSTD)
POISON = altered(LARGE, body=compress(Codec.ZSTD, decompress(Codec.ZSTD, LARGE[61:], 1 << 24) + b"\x00"))
RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"


@dataclass(slots=True)
class Elsewhere:
    """A worker that works when the test says so. What it gets and returns is pickled."""

    waiting: list[tuple[BatchesWork, Callable[[Any], None]]] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    """The number of batches in each piece."""

    def offload(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        assert isinstance(work, BatchesWork)
        self.pieces.append(len(work.works))
        self.waiting.append((pickle.loads(pickle.dumps(work)), done))

    def work(self) -> None:
        """Do everything, also what comes in the meantime."""
        while self.waiting:
            work, done = self.waiting.pop(0)
            done(pickle.loads(pickle.dumps(work())))

    def fail(self) -> None:
        self.waiting.pop(0)[1](OSError("the worker died"))


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


@pytest.fixture(autouse=True)
def scanning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_validator, "SCANNING", SCANNING)


@pytest.fixture
def client(elsewhere: Elsewhere) -> BrokerClient:
    """Topics ``t`` of 200 partitions and ``compacted``."""
    client = BrokerClient(make_broker(settings=BrokerSettings(produce_batch_max_records=5_000_000)))
    client.broker.topics.create("t", 200, {})
    client.broker.topics.create("compacted", 1, {"cleanup.policy": "compact"})
    client.broker.offload = elsewhere.offload
    return client


def request(client: BrokerClient, *batches: bytes, topic: str = "t", acks: int = -1) -> ProduceRequest:
    """A request with a batch for each partition, from 0 on."""
    known = client.broker.topics.named(topic)
    assert known is not None
    return produce_request(topic, *batches, topic_id=known.id, acks=acks)


def test_a_large_batch_is_appended_when_it_has_been_validated(
    client: BrokerClient, elsewhere: Elsewhere
) -> None:
    log = client.broker.topics.log("t", 0)
    pending = client.defer(request(client, LARGE, batch_of(b"a")))
    log.append(batch_of(b"other"), NOW_MS)
    ends_before = log.log_end_offset, client.broker.topics.log("t", 1).log_end_offset

    elsewhere.work()

    answers = pending().responses[0].partition_responses
    assert ends_before == (1, 0)
    assert [(each.error_code, each.base_offset) for each in answers] == [(0, 1), (0, 0)]
    assert values_from(log)[:2] == [(0, b"other"), (1, b"")]
    assert log.log_end_offset == 1 + COUNT


def test_a_large_poisonous_batch_is_refused(client: BrokerClient, elsewhere: Elsewhere) -> None:
    pending = client.defer(request(client, POISON))

    elsewhere.work()

    answer = pending().responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert client.broker.topics.log("t", 0).log_end_offset == 0


def test_records_that_break_a_rule_are_named_by_the_worker(
    client: BrokerClient, elsewhere: Elsewhere
) -> None:
    found = [Record(b"k", b"v", NOW_MS)] * (COUNT - 1) + [Record(None, b"v", NOW_MS)]
    pending = client.defer(request(client, build_batch(found), topic="compacted"))

    elsewhere.work()

    answer = pending().responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [COUNT - 1]


def test_two_million_records_in_a_kilobyte_are_not_opened_on_the_loop(
    client: BrokerClient, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []
    monkeypatch.setattr(log_validator, "decompress", lambda codec, *_: opened.append(codec))
    count = 2_000_000
    bomb = altered(
        batch_of(b"a", codec=Codec.ZSTD, timestamp_ms=NOW_MS + 2 * 3_600_000),
        body=compress(Codec.ZSTD, RECORD * count),
        record_count=count,
        last_offset_delta=count - 1,
    )

    client.defer(request(client, bomb))

    assert len(bomb) < 1_500
    assert (elsewhere.pieces, opened) == ([1], [])


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_at_most_two_megabytes_are_decompressed_on_the_loop(
    client: BrokerClient, elsewhere: Elsewhere, codec: Codec, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[int] = []

    def noting(codec: int, data: bytes, max_bytes: int) -> bytes:
        allowed.append(max_bytes)
        return decompress(codec, data, max_bytes)

    monkeypatch.setattr(log_validator, "decompress", noting)
    batch = batch_of(bytes(1_600_000), codec=codec)

    client.defer(request(client, batch, batch, batch))

    assert sum(allowed) < 2 * INLINE_BYTES
    assert elsewhere.pieces == [2]


def test_as_many_records_as_the_budget_has_need_no_worker(client: BrokerClient, elsewhere: Elsewhere) -> None:
    batch = build_batch([Record(b"k", b"v" * 50, NOW_MS)] * INLINE_RECORDS)

    client.defer(request(client, batch))

    assert elsewhere.pieces == []
    assert client.broker.topics.log("t", 0).log_end_offset == INLINE_RECORDS


def test_records_in_c_need_no_worker_up_to_a_megabyte(
    client: BrokerClient, elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_validator, "SCANNING", MIN_RECORD_BYTES)
    count = INLINE_BYTES // 2 // MIN_RECORD_BYTES // 16

    client.defer(request(client, *[build_batch([Record(None, None)] * count, codec=Codec.ZSTD)] * 14))

    assert elsewhere.pieces == []
    assert client.broker.topics.log("t", 0).log_end_offset == count


def test_headers_count_too(client: BrokerClient, elsewhere: Elsewhere) -> None:
    crowded = [Record(b"k", b"v", NOW_MS, (("h", b""),) * 100)] * 105

    client.defer(request(client, build_batch(crowded)))

    assert elsewhere.pieces == [1]


def test_the_batches_of_one_request_share_the_budget_and_travel_together(
    client: BrokerClient, elsewhere: Elsewhere
) -> None:
    batch = build_batch([Record(b"k", value + b"v" * 40, NOW_MS) for value in VALUES[:1_000]])
    inline = INLINE_RECORDS // 1_000
    each_piece = WORK_BYTES // len(batch)
    pending = client.defer(request(client, *[batch] * 200))

    elsewhere.work()

    answers = pending().responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [0] * 200
    assert sum(elsewhere.pieces) == 200 - inline
    assert max(elsewhere.pieces) == each_piece
    assert [client.broker.topics.log("t", index).log_end_offset for index in range(200)] == [1_000] * 200


def test_many_pieces_do_not_grow_the_stack_of_a_host_without_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(produce_batches, "WORK_BYTES", 1)
    client = BrokerClient(make_broker(settings=BrokerSettings(produce_inline_bytes=0)))
    client.broker.topics.create("wide", 1_000, {})

    response = client.send(request(client, *[batch_of(b"a")] * 1_000, topic="wide"))

    assert {answer.error_code for answer in response.responses[0].partition_responses} == {0}


@pytest.mark.parametrize("inline_bytes", [1 << 20, 1], ids=["inline", "worker"])
@pytest.mark.parametrize(
    ("most_bytes", "code"), [(50_000, ErrorCode.NONE), (20_000, ErrorCode.MESSAGE_TOO_LARGE)]
)
def test_a_setting_bounds_what_a_batch_opens_to(
    elsewhere: Elsewhere, inline_bytes: int, most_bytes: int, code: ErrorCode
) -> None:
    settings = BrokerSettings(produce_decompressed_max_bytes=most_bytes, produce_inline_bytes=inline_bytes)
    client = BrokerClient(make_broker(settings=settings))
    client.broker.offload = elsewhere.offload
    client.broker.topics.create("small", 1, {"max.message.bytes": "1000"})
    pending = client.defer(request(client, batch_of(bytes(40_000), codec=Codec.ZSTD), topic="small"))

    worked_elsewhere = bool(elsewhere.waiting)
    elsewhere.work()

    assert worked_elsewhere is (inline_bytes == 1)
    assert pending().responses[0].partition_responses[0].error_code == code


def test_a_producer_tries_again_if_the_worker_dies(client: BrokerClient, elsewhere: Elsewhere) -> None:
    pending = client.defer(request(client, LARGE, batch_of(b"a")))

    elsewhere.fail()

    answers = pending().responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT, 0]


def test_without_acks_a_validated_batch_has_no_answer(client: BrokerClient, elsewhere: Elsewhere) -> None:
    pending = client.defer(request(client, LARGE, acks=0))

    elsewhere.work()

    assert pending() is None
    assert client.broker.topics.log("t", 0).log_end_offset == COUNT


def test_without_acks_a_refused_batch_closes_the_connection(
    client: BrokerClient, elsewhere: Elsewhere
) -> None:
    pending = client.defer(request(client, POISON, acks=0))

    elsewhere.work()

    with pytest.raises(EOFError):
        pending()


def test_a_topic_that_is_deleted_meanwhile_is_unknown(client: BrokerClient, elsewhere: Elsewhere) -> None:
    pending = client.defer(request(client, LARGE))
    topic = client.broker.topics.named("t")
    assert topic is not None
    client.broker.topics.delete(topic)

    elsewhere.work()

    assert pending().responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unchanged_batch_does_not_come_back_from_the_worker(
    client: BrokerClient, elsewhere: Elsewhere
) -> None:
    client.defer(request(client, LARGE))

    (outcome,) = elsewhere.waiting[0][0]()

    assert isinstance(outcome, PreparedBatch)
    assert outcome.body == b""


def test_a_large_batch_is_recompressed_by_the_worker(client: BrokerClient, elsewhere: Elsewhere) -> None:
    log = client.broker.topics.log("t", 0)
    log.config = replace(log.config, compression_type=Codec.LZ4)
    pending = client.defer(request(client, LARGE))

    elsewhere.work()

    assert pending().responses[0].partition_responses[0].error_code == 0
    assert len(values_from(log)) == COUNT


def test_a_refused_batch_is_freed_with_its_request(client: BrokerClient) -> None:
    poison = altered(batch_of(b"a"), body=b"\xff" * 40)
    batches = ProduceBatches(client.broker.offload, OpeningBudget(1_000))
    context = RequestContext(client.connection, 0, 13, 1, None, NOW_MS)

    find = client.broker.topics.by_name.get
    run_steps(batches.prepare(request(client, poison), context, lambda data: (find(data.name), None)))

    refusal = batches.outcomes[0, 0]
    assert isinstance(refusal, ApiError)
    assert refusal.code == ErrorCode.INVALID_RECORD
    assert (refusal.__traceback__, refusal.__context__) == (None, None)

"""Clients of a gateway with quotas: charges, throttle times, and clients that are not read."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from odradek.gateway.pair_failure import Cause
from odradek.gateway.pair_state import Pause
from odradek.gateway.path_quotas import PathQuotas
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from odradek.wire.codec import decode
from odradek.wire.declared import DeclaredResponses
from odradek.wire.error_code import ErrorCode
from odradek.wire.header import flexible_response_header, read_response_header
from odradek.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.wire.messages.heartbeat import HeartbeatResponse
from odradek.wire.messages.produce import ProduceRequest, ProduceResponse
from support.gateway_pair import HEARTBEAT, FakeAnswers, Through, answer, bare, framed, request, response

EVERYONE = ClientQuotaEntity(client_id=DEFAULT)
PUSH = 72


class Charged(Through):
    """A pair with quotas, and a clock."""

    def __init__(self, entity: ClientQuotaEntity = EVERYONE, **values: float) -> None:
        self.clock = MockClock()
        self.looks_ns = 0
        """How long each look at the clock takes."""
        self.spent_ns = 0
        self.managers = QuotaManagers(QuotaConfigs(), self.clock, timer=self.clock.timer)
        self.managers.apply(entity, values)
        quotas = PathQuotas(self.managers, DeclaredResponses())
        super().__init__(at_once=True, monotonic_ns=self.look, quotas=quotas)

    def look(self) -> int:
        self.spent_ns += self.looks_ns
        return self.clock.monotonic_ns() + self.spent_ns

    def told(self, cls: type[Any], version: int) -> Any:
        """The last response that the client has received."""
        data = self.received
        while len(data) > 4 + (size := struct.unpack_from(">i", data)[0]):
            data = data[4 + size :]
        _, at = read_response_header(data, 4, flexible_response_header(cls, version))
        return decode(cls, version, data, at)

    @property
    def is_read(self) -> bool:
        return Pause.THROTTLED not in self.client.held


def produced(version: int, size: int, acks: int = -1) -> bytes:
    """A Produce request whose frame has this length."""
    frame = request(ProduceRequest(acks=acks), version, 1)
    return framed(frame[4:] + bytes(size + 4 - len(frame)))


def fetched(size: int, version: int = 12) -> bytes:
    """A Fetch response that takes so many bytes with its length."""
    partition = PartitionData(records=b"")
    message = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    rest = size - len(response(message, version, 1))
    partition.records = bytes(rest - 2)  # the length of the records takes two bytes more
    return response(message, version, 1)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_producer_beyond_its_quota_is_told_and_not_read(version: int) -> None:
    through = Charged(producer_byte_rate=1_000)

    through.send(produced(version, 12_500))
    through.reply(response(ProduceResponse(), version, 1))

    assert through.told(ProduceResponse, version).throttle_time_ms == 2_500  # 1 250 bytes/s in ten seconds
    assert not through.is_read
    through.clock.advance(2_499)
    assert not through.is_read
    through.clock.advance(1)
    assert through.is_read


def test_a_producer_within_its_quota_is_not_throttled() -> None:
    through = Charged(producer_byte_rate=1_000)
    theirs = response(ProduceResponse(), 9, 1)

    through.send(produced(9, 10_000))
    through.reply(theirs)

    assert through.received == theirs
    assert through.is_read


def test_a_client_without_a_quota_is_not_throttled() -> None:
    through = Charged(ClientQuotaEntity(client_id="another"), producer_byte_rate=1)

    through.send(produced(9, 100_000))
    through.reply(response(ProduceResponse(), 9, 1))

    assert through.is_read


@pytest.mark.parametrize(("theirs", "told"), [(100, 2_500), (9_000, 9_000)])
def test_the_larger_throttle_time_is_told(theirs: int, told: int) -> None:
    through = Charged(producer_byte_rate=1_000)

    through.send(produced(9, 12_500))
    through.reply(response(ProduceResponse(throttle_time_ms=theirs), 9, 1))

    assert through.told(ProduceResponse, 9).throttle_time_ms == told
    through.clock.advance(2_500)
    assert through.is_read


def test_a_producer_without_acks_is_not_read() -> None:
    through = Charged(producer_byte_rate=1_000)

    through.send(produced(9, 12_500, acks=0))

    assert not through.is_read
    assert through.received == b""


@pytest.mark.parametrize("version", [4, 11, 12, 16, 18])
def test_a_consumer_beyond_its_quota_is_told_and_not_read(version: int) -> None:
    through = Charged(consumer_byte_rate=1_000)

    through.send(bare(1, version, 1, b"\0"))
    theirs = fetched(12_500, version)
    through.reply(theirs)

    told = through.told(FetchResponse, version)
    assert told.throttle_time_ms == len(theirs) - 10_000
    assert len(told.responses[0].partitions[0].records) > 12_000
    assert not through.is_read


def test_only_fetched_bytes_count_for_the_consumers_quota() -> None:
    through = Charged(consumer_byte_rate=1, producer_byte_rate=1)

    through.send(bare(HEARTBEAT, 4, 1, bytes(5_000)))
    through.reply(response(HeartbeatResponse(), 4, 1))

    assert through.is_read


def test_the_user_that_the_broker_has_accepted_is_charged() -> None:
    through = Charged(ClientQuotaEntity(user="alice"), consumer_byte_rate=1_000)
    through.identity.principal = "User:alice"

    through.send(bare(1, 12, 1, b"\0"))
    through.reply(fetched(12_500))

    assert not through.is_read


def test_two_pairs_of_a_client_share_its_quota() -> None:
    through = Charged(producer_byte_rate=1_000)
    other = Through(monotonic_ns=through.look, quotas=through.path.quotas)

    for each in (through, other):
        each.send(produced(9, 6_250))
        each.reply(response(ProduceResponse(), 9, 1))

    assert through.is_read
    assert Pause.THROTTLED in other.client.held


def test_the_time_of_the_gateway_is_charged() -> None:
    through = Charged(request_percentage=1)
    through.looks_ns = 40_000_000  # two looks around a chunk: 40 ms for each of the two directions

    through.send(bare(HEARTBEAT, 4, 1, b"\0"))
    through.reply(response(HeartbeatResponse(), 4, 1))
    through.send(bare(HEARTBEAT, 4, 2, b"\0"))
    through.reply(response(HeartbeatResponse(), 4, 2))

    assert 0 < through.told(HeartbeatResponse, 4).throttle_time_ms <= 1_000  # one window at most
    assert not through.is_read


def test_the_time_of_a_long_poll_is_free() -> None:
    through = Charged(request_percentage=1)

    through.send(bare(1, 12, 1, b"\0"))
    through.clock.advance(30_000)
    through.reply(fetched(1_000))

    assert through.is_read


def test_the_longest_throttle_time_counts() -> None:
    through = Charged(producer_byte_rate=1_000, request_percentage=0.001)
    through.looks_ns = 1_000_000

    through.send(produced(9, 12_500))
    through.reply(response(ProduceResponse(), 9, 1))

    assert through.told(ProduceResponse, 9).throttle_time_ms == 2_500
    assert through.managers.produce.queue_size(through.clock.monotonic_ms()) == 1
    assert through.managers.request.queue_size(through.clock.monotonic_ms()) == 0


def test_a_longer_throttle_time_replaces_a_shorter_one() -> None:
    through = Charged(producer_byte_rate=1_000)

    for _ in range(2):
        through.send(produced(9, 12_500))
        through.reply(response(ProduceResponse(), 9, 1))

    assert through.told(ProduceResponse, 9).throttle_time_ms == 15_000
    through.clock.advance(14_999)
    assert not through.is_read
    assert through.managers.produce.queue_size(through.clock.monotonic_ms()) == 1
    through.clock.advance(1)
    assert through.is_read


def test_an_older_version_without_the_field_is_not_read() -> None:
    through = Charged(producer_byte_rate=1_000)
    theirs = answer(1, bytes(20))

    through.send(bare(0, 0, 1, b"\xff\xff" + bytes(12_500)))
    through.reply(theirs)

    assert through.received == theirs
    assert not through.is_read


def test_a_closed_pair_is_not_throttled_and_its_bytes_count() -> None:
    through = Charged(producer_byte_rate=1_000)
    through.send(produced(9, 20_000))
    through.reply(response(ProduceResponse(), 9, 1))
    through.send(produced(9, 20_000))

    through.pair.close(Cause.CLIENT)

    now_ms = through.clock.monotonic_ms()
    assert through.managers.produce.queue_size(now_ms) == 0
    assert through.managers.produce.record_and_throttle_ms("ANONYMOUS", "app", 0, now_ms) == 30_000


def test_a_throttled_push_is_not_read() -> None:
    through = Charged(request_percentage=1)
    assert isinstance(through.answers, FakeAnswers)
    through.answers.at_once = False
    through.send(bare(PUSH, 0, 1, b"\0metrics"))

    through.answers.asked.pop()[1](struct.pack(">ibih", 1, 0, 700, 0))

    assert not through.is_read
    through.clock.advance(700)
    assert through.is_read


TOPICS = [CreatableTopic(name="a", num_partitions=30), CreatableTopic(name="b", num_partitions=30)]
CREATE = CreateTopicsRequest(topics=TOPICS)
DELETE = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{number}") for number in range(60)])
OLD_DELETE = DeleteTopicsRequest(topic_names=[f"t{number}" for number in range(60)])
ADD = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=61, assignments=None)])
STRICT = [
    (CREATE, CreateTopicsResponse, 6),
    (CREATE, CreateTopicsResponse, 7),
    (DELETE, DeleteTopicsResponse, 6),
    (OLD_DELETE, DeleteTopicsResponse, 5),
    (ADD, CreatePartitionsResponse, 3),
]
PERMISSIVE = [
    (CREATE, CreateTopicsResponse, 5),
    (OLD_DELETE, DeleteTopicsResponse, 4),
    (ADD, CreatePartitionsResponse, 2),
]


def errors_of(told: Any) -> set[int]:
    rows = getattr(told, "topics", None) or getattr(told, "responses", None) or told.results
    return {each.error_code for each in rows}


@pytest.mark.parametrize(("message", "cls", "version"), STRICT)
def test_mutations_beyond_the_quota_are_refused(message: Any, cls: type[Any], version: int) -> None:
    through = Charged(controller_mutation_rate=2)  # a burst of 22
    through.send(request(message, version, 1))
    through.reply(response(cls(), version, 1))
    sent = through.sent
    assert through.is_read

    through.send(request(message, version, 2))

    assert through.sent == sent
    told = through.told(cls, version)
    assert errors_of(told) == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert told.throttle_time_ms == 19_000  # 38 partitions too many, at 2 per second
    assert not through.is_read
    through.clock.advance(19_000)
    through.send(request(message, version, 3))
    assert len(through.sent) > len(sent)


@pytest.mark.parametrize(("message", "cls", "version"), PERMISSIVE)
def test_mutations_of_old_clients_are_throttled_only(message: Any, cls: type[Any], version: int) -> None:
    through = Charged(controller_mutation_rate=2)

    through.send(request(message, version, 1))
    through.reply(response(cls(), version, 1))

    assert through.told(cls, version).throttle_time_ms == 19_000
    assert through.sent == request(message, version, 1)
    assert not through.is_read


def test_partitions_are_counted_from_the_request() -> None:
    through = Charged(controller_mutation_rate=1)
    chosen = [CreatableReplicaAssignment(partition_index=number) for number in range(5)]
    create = CreateTopicsRequest(
        topics=[
            CreatableTopic(name="a", num_partitions=-1),
            CreatableTopic(name="b", num_partitions=-1, assignments=chosen),
        ]
    )
    add = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(name="c", count=100, assignments=[CreatePartitionsAssignment()] * 2),
            CreatePartitionsTopic(name="d", count=3, assignments=None),
        ]
    )
    manager = through.managers.controller_mutation

    through.send(request(create, 7, 1), request(add, 3, 2))

    (tokens,) = [
        each.value for each in manager.measured(through.clock.monotonic_ms()) if each.name.name == "tokens"
    ]
    assert tokens == 11 - 6 - 4


def test_a_request_in_pieces_is_counted_once() -> None:
    through = Charged(controller_mutation_rate=2)
    frame = request(CREATE, 7, 1)

    for byte in frame:
        through.send(bytes([byte]))

    assert through.sent == frame
    through.reply(response(CreateTopicsResponse(), 7, 1))
    through.send(request(CREATE, 7, 2))
    assert errors_of(through.told(CreateTopicsResponse, 7)) == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}


def test_a_refusal_waits_for_earlier_responses() -> None:
    through = Charged(controller_mutation_rate=2)
    through.send(request(CREATE, 7, 1), bare(HEARTBEAT, 4, 2, b"\0"), request(CREATE, 7, 3))
    assert through.received == b""

    through.reply(response(CreateTopicsResponse(), 7, 1), response(HeartbeatResponse(), 4, 2))

    assert errors_of(through.told(CreateTopicsResponse, 7)) == {ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert through.pair.is_idle


def test_a_request_that_makes_no_sense_is_for_the_broker() -> None:
    through = Charged(controller_mutation_rate=2)
    frame = bare(19, 7, 1, b"\0" + b"\xff" * 40)

    through.send(frame)

    assert through.sent == frame
    assert through.cause is None


def test_a_request_that_is_too_large_closes() -> None:
    through = Charged(controller_mutation_rate=2)

    through.send(struct.pack(">ihhih", 2 << 20, 19, 7, 1, 0))

    assert through.cause == "bad-request"


def test_without_a_quota_nothing_is_charged() -> None:
    through = Charged()

    assert through.pair.charges is None
    assert type(through.pair.requests).__name__ == "Requests"

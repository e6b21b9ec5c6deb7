"""A channel that is observed answers as any other, and tells what it has seen."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.broker.dispatch.routes import CloseConnection
from odradek.broker.dispatch.throttling import Throttle, Throttled
from odradek.gateway.observation.observer import HEAD_BYTES, CloseCause
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import OfTopic
from odradek.net.observed_channel import ObservedChannel
from odradek.plugin.client_quota import ClientQuotaType
from odradek.plugin.context import ConnectionContext
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.quota_config import QuotaConfig
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.errors import WireError
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.parts import Parts
from support.batches import batch_of
from support.channels import RecordingTransport, ScriptedListener, framed, receive, transport, written
from support.gateway_pair import request as produce_request

PRODUCE, FETCH, HEARTBEAT, API_VERSIONS = 0, 1, 12, 18
NO_TAGS_ACKS_1 = b"\0\0\0\1"
"""After the client id of Produce v9; there is no transactional id."""
ANSWER = struct.pack(">ii", 10, 7) + b"answer"


@dataclass
class Seen:
    """The observer of all connections, and of the only one."""

    identity: PairIdentity | None = None
    clients: list[tuple[str, str, str]] = field(default_factory=list)
    looks: list[tuple[int, int, bytes]] = field(default_factory=list)
    asked: list[tuple[int, int, int]] = field(default_factory=list)
    answered: list[tuple[int, int]] = field(default_factory=list)
    outcomes: list[tuple[int, int, int, bytes]] = field(default_factory=list)
    produced: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[tuple[CloseCause, list[int]]] = field(default_factory=list)

    def opened(self, identity: PairIdentity) -> Seen:
        self.identity = identity
        return self

    def produce(
        self,
        version: int,
        acks: int,
        count: int,
        size: int,
        records: int,
        batches: int,
        batch_bytes: int,
        in_flight: int,
    ) -> None:
        assert acks == 1
        self.batches(records, batches, batch_bytes)
        self.requests(PRODUCE, version, count, size, in_flight)

    def wrote(self, version: int, topics: Iterable[OfTopic]) -> None: ...
    def writes(self, version: int, topic: tuple[bytes, bool] | None) -> None: ...

    def batches(self, records: int, batches: int, batch_bytes: int) -> None:
        self.produced.append((records, batches, batch_bytes))

    def look(self, api_key: int, version: int, head: bytes, at: int) -> None:
        self.looks.append((api_key, version, head[at : at + 10]))

    def requests(self, api_key: int, version: int, count: int, size: int, in_flight: int) -> None:
        assert (count, in_flight) == (1, 1)
        self.asked.append((api_key, version, size))
        identity = self.identity
        assert identity is not None
        self.clients.append((identity.client_id, identity.principal, identity.software_name))

    def responses(self, api_key: int, count: int, size: int, latency_ns: int) -> None:
        assert count == 1
        assert latency_ns >= 0
        self.answered.append((api_key, size))

    def outcome(self, api_key: int, version: int, size: int, head: bytes, at: int, *_: int | None) -> None:
        assert self.answered[-1] == (api_key, size + 4)
        self.outcomes.append((api_key, version, size, head[at : at + HEAD_BYTES]))

    def closed(self, by: CloseCause, outstanding: Iterable[int], in_order: bool) -> None:
        self.ends.append((by, list(outstanding)))


@dataclass
class Scripted:
    """A dispatcher with one answer."""

    reply: Any = ANSWER
    context: ConnectionContext | None = None

    def answer(self, frame: bytes | memoryview, offset: int, connection: ConnectionContext) -> Any:
        self.context = connection
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def request(key: int, version: int = 3, client_id: str | None = "app", body: bytes = b"") -> bytes:
    name = b"" if client_id is None else client_id.encode()
    return struct.pack(">hhih", key, version, 7, -1 if client_id is None else len(name)) + name + body


def observed(seen: Seen, reply: Any = ANSWER) -> ObservedChannel:
    listener = ScriptedListener(dispatcher=Scripted(reply))  # type: ignore[arg-type]  # answers frames, too
    channel = ObservedChannel(listener, seen)
    channel.connection_made(RecordingTransport())
    return channel


def test_a_request_and_its_answer_are_seen() -> None:
    seen = Seen()
    channel = observed(seen)
    frame = request(HEARTBEAT)

    channel.data_received(framed(frame))

    assert written(channel) == ANSWER
    assert seen.asked == [(HEARTBEAT, 3, len(frame) + 4)]
    assert seen.looks == [(HEARTBEAT, 3, frame[:10])]
    assert seen.outcomes == [(HEARTBEAT, 3, len(ANSWER) - 4, ANSWER[4:])]


def test_pipelined_requests_are_seen_each() -> None:
    seen = Seen()
    channel = observed(seen)

    receive(channel, framed(request(HEARTBEAT), request(FETCH, 12, body=b"x" * 3_000), request(HEARTBEAT, 4)))

    assert [each[:2] for each in seen.asked] == [(HEARTBEAT, 3), (FETCH, 12), (HEARTBEAT, 4)]
    assert [each[:2] for each in seen.outcomes] == [(HEARTBEAT, 3), (FETCH, 12), (HEARTBEAT, 4)]


@pytest.mark.parametrize("client_id", ["app", "c" * 2_000])
@pytest.mark.parametrize("version", [3, 9, 13])
def test_the_batches_of_a_request_are_counted(client_id: str, version: int) -> None:
    seen = Seen()
    channel = observed(seen)
    batch = batch_of(b"v" * 5_000, b"v")
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=batch)] * 2)
    frame = produce_request(ProduceRequest(acks=1, topic_data=[topic]), version, 7, client_id)

    receive(channel, frame)

    assert seen.produced == [(4, 2, 2 * len(batch))]
    assert seen.asked == [(PRODUCE, version, len(frame))]


def test_a_malformed_produce_request_is_a_request() -> None:
    seen = Seen()
    channel = observed(seen)

    receive(channel, framed(request(PRODUCE, 9, "app", b"\0")))

    assert (seen.produced, [each[:2] for each in seen.asked]) == ([], [(PRODUCE, 9)])


def test_a_request_without_an_answer_has_none() -> None:
    seen = Seen()
    channel = observed(seen, None)

    channel.data_received(framed(request(PRODUCE)))
    channel.connection_lost(None)

    assert (len(seen.asked), seen.outcomes) == (1, [])
    assert seen.ends == [("client", [])]


def test_a_later_answer_is_seen_when_it_comes() -> None:
    seen = Seen()
    later: Deferred[Any] = Deferred()
    channel = observed(seen, later)
    channel.data_received(framed(request(FETCH)))
    assert seen.outcomes == []

    later.complete(ANSWER)

    assert written(channel) == ANSWER
    assert [each[0] for each in seen.outcomes] == [FETCH]


def test_a_client_that_leaves_a_request_behind() -> None:
    seen = Seen()
    channel = observed(seen, Deferred())
    channel.data_received(framed(request(FETCH)))

    channel.connection_lost(None)

    assert seen.ends == [("client", [FETCH])]


@pytest.mark.parametrize("error", [WireError("bad"), CloseConnection("no")])
def test_a_refused_request_is_seen_and_closed_by_the_host(error: Exception) -> None:
    seen = Seen()
    channel = observed(seen, error)

    channel.data_received(framed(request(FETCH)))
    channel.connection_lost(None)

    assert transport(channel).closed
    assert [each[0] for each in seen.asked] == [FETCH]
    assert seen.ends == [("broker", [FETCH])]


def test_the_beginning_of_an_answer_with_records_is_seen() -> None:
    seen = Seen()
    answer = ANSWER[:8] + b"\0" * 2 + b"r" * 100
    channel = observed(seen, ANSWER[:8] + Parts([b"\0" * 2, b"r" * 100]))

    channel.data_received(framed(request(FETCH)))

    assert seen.outcomes == [(FETCH, 3, len(answer) - 4, answer[4 : 4 + HEAD_BYTES])]


def test_the_answer_of_a_throttled_client_is_seen() -> None:
    seen, clock = Seen(), MockClock()
    manager = ClientQuotaManager(ClientQuotaType.FETCH, QuotaConfig(), clock, timer=clock.timer)
    channel = observed(seen, Throttled(ANSWER, Throttle(manager, 100), ("u", "c"), clock.monotonic_ms()))

    channel.data_received(framed(request(FETCH)))

    assert [each[0] for each in seen.outcomes] == [FETCH]


def test_the_client_is_known_with_its_first_request_after_the_opening() -> None:
    seen = Seen()
    channel = observed(seen)
    channel.data_received(framed(request(API_VERSIONS, client_id=None)))
    channel.context.principal = "User:alice"
    channel.context.client_software_name = "kafka-python"

    channel.data_received(framed(request(HEARTBEAT)))

    assert seen.clients[-1] == ("app", "User:alice", "kafka-python")


def test_bytes_that_are_no_request_are_not_seen() -> None:
    seen = Seen()
    channel = observed(seen, WireError("bad"))

    channel.data_received(framed(b"short"))

    assert seen.asked == []


def test_a_listener_may_replace_what_answers() -> None:
    seen = Seen()
    channel = observed(seen, b"")

    channel.answer = Scripted(ANSWER).answer
    channel.data_received(framed(request(HEARTBEAT)))

    assert written(channel) == ANSWER
    assert len(seen.outcomes) == 1

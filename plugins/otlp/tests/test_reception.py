"""Requests over HTTP and gRPC alike: repeated requests, bounds, and the outcomes that are counted."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.plugin import Receipt, Refused, TelemetryRecord
from odradek_otlp.reception import Reception
from odradek_otlp.refused_request import Limit, RefusedRequest
from odradek_otlp.source_settings import SourceSettings
from odradek_otlp.unfinished_requests import MAX_REQUESTS, Attempt, UnfinishedRequests
from support.otlp_source import body_of, entry

THREE = body_of(entry(host="a"), entry(host="b"), entry(host="c"))
OTHER = body_of(entry(host="d"))


@dataclass(eq=False)
class Log:
    """An intake with room for some records."""

    room: int = 100
    refuses: str = ""
    """The client id that is refused."""
    open: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing is answered before it is set."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    stored: list[bytes] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    unread: int = 0

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        self.asked.set()
        await self.open.wait()
        receipt = Receipt()
        for record in records:
            if self.refuses and self.refuses == record.context.client_id:
                receipt.refused.append(Refused(record, "too large"))
            elif self.room:
                self.room -= 1
                receipt.stored += 1
                self.stored.append(record.payload.data)
            else:
                receipt.left.append(record)
        return receipt

    def listening(self) -> None:
        pass

    def unreadable(self, records: int) -> None:
        self.unread += records

    def answered(self, outcome: str) -> None:
        self.outcomes[outcome] += 1


@dataclass
class Request:
    """A request whose body is there."""

    data: bytes = THREE
    is_json: bool = False
    authorization: str = ""
    peer: tuple[str, int] = ("10.0.0.7", 40_000)
    announced_bytes: int | None = None
    delay_s: float = 0.0

    async def body(self, limit: Limit) -> bytes:
        await asyncio.sleep(self.delay_s)
        return self.data

    def is_gzip(self, body: bytes) -> bool:
        return body.startswith(b"\x1f\x8b")


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    monkeypatch.setattr("odradek_otlp.reception.WAIT_S", 0.0)


def reception_of(log: Log, **fields: Any) -> Reception:
    log.open.set()
    return Reception(SourceSettings(**fields), log)


async def outcome(reception: Reception, request: Request) -> ExportMetricsServiceResponse | str:
    """The answer, or the outcome of the refusal."""
    try:
        return await reception.export(request)
    except RefusedRequest as refused:
        return refused.reason.outcome


def answers(log: Log, *requests: Request, **fields: Any) -> list[ExportMetricsServiceResponse | str]:
    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(log, **fields)
        found = [await outcome(reception, request) for request in requests]
        assert (reception.held_bytes, reception.receiving, len(reception.storing)) == (0, 0, 0)
        return found

    return asyncio.run(run())


ACCEPTED = ExportMetricsServiceResponse()


def test_a_gzip_stream_may_have_several_members() -> None:
    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(log)
        members = gzip.compress(THREE[:9]) + gzip.compress(b"") + gzip.compress(THREE[9:])
        return [await outcome(reception, Request(members))]

    log = Log(room=100)

    assert asyncio.run(run()) == [ACCEPTED]
    assert len(log.stored) == 3


def test_a_repetition_stores_only_what_had_no_room() -> None:
    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(log)
        found = [await outcome(reception, Request())]
        log.room = 1
        found.append(await outcome(reception, Request(gzip.compress(THREE))))
        log.room = 100
        found.append(await outcome(reception, Request()))
        found.append(await outcome(reception, Request()))
        return found

    log = Log(room=1)

    assert asyncio.run(run()) == ["no-room", "no-room", ACCEPTED, ACCEPTED]
    first_three = [body_of(entry(host=name)) for name in "abc"]
    assert log.stored == first_three * 2  # the last request is a new one: the one before was answered


def test_a_refused_record_of_the_first_attempt_is_told_in_the_end() -> None:
    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(log)
        found = [await outcome(reception, Request(body))]
        log.room, log.refuses = 100, "nobody"
        found.append(await outcome(reception, Request(body)))
        return found

    log = Log(room=0, refuses="a")
    body = body_of(entry(points=3, service__name="a"), entry(service__name="b"))

    first, second = asyncio.run(run())

    assert first == "no-room"
    assert isinstance(second, ExportMetricsServiceResponse)
    assert second.partial_success.rejected_data_points == 3
    assert log.stored == [body_of(entry(service__name="b"))]


def test_a_sender_that_leaves_before_the_answer_stores_nothing_twice() -> None:
    async def run() -> list[Any]:
        reception = reception_of(log)
        log.open.clear()
        first = asyncio.ensure_future(reception.export(Request()))
        await log.asked.wait()
        first.cancel()
        await asyncio.wait({first})
        second = asyncio.ensure_future(outcome(reception, Request()))
        await asyncio.sleep(0)
        log.open.set()
        return [await second, reception.held_bytes]

    log = Log()

    assert asyncio.run(run()) == [ACCEPTED, 0]
    assert len(log.stored) == 3
    assert log.outcomes == {"abandoned": 1, "accepted": 1}


def test_equal_requests_that_were_answered_are_stored_again() -> None:
    log = Log()

    assert answers(log, Request(OTHER), Request(OTHER)) == [ACCEPTED] * 2
    assert log.stored == [OTHER] * 2


def test_another_request_is_not_a_repetition() -> None:
    log = Log(room=1)

    assert answers(log, Request(THREE), Request(OTHER)) == ["no-room", "no-room"]
    assert log.stored == [body_of(entry(host="a"))]


def test_the_memory_of_attempts_is_bounded() -> None:
    unfinished = UnfinishedRequests()

    for number in range(MAX_REQUESTS + 5):
        unfinished.add(b"%d" % number, Attempt(bytearray(1)))

    assert len(unfinished.attempts) == MAX_REQUESTS
    assert asyncio.run(unfinished.resumed(b"0")) is None
    assert asyncio.run(unfinished.resumed(b"%d" % MAX_REQUESTS)) is not None


JSON_BODY = json.dumps({"resourceMetrics": [{"schemaUrl": "u" * 100}]}).encode()


@pytest.mark.parametrize(
    ("request_", "fields", "expected"),
    [
        (Request(b"\xff\xfe"), {}, "malformed"),
        (Request(b"{", is_json=True), {}, "malformed"),
        (Request(gzip.compress(THREE)[:-9]), {}, "malformed"),
        (Request(gzip.compress(THREE) + b"x"), {}, "malformed"),
        (Request(gzip.compress(THREE[:9]) + gzip.compress(THREE[9:])[:-1]), {}, "malformed"),
        (Request(gzip.compress(b"") * 1_000), {}, "malformed"),
        (Request(gzip.compress(bytes(1 << 15)) * 3), {"request_max_bytes": 1 << 16}, "request.max.bytes"),
        (Request(gzip.compress(bytes(1 << 20))), {"request_max_bytes": 1 << 16}, "request.max.bytes"),
        (Request(gzip.compress(JSON_BODY), is_json=True), {"json_max_bytes": 90}, "json.max.bytes"),
        (Request(announced_bytes=1 << 30), {}, "request.max.bytes"),
        (Request(announced_bytes=1_000), {"buffer_max_bytes": 999}, "buffer.max.bytes"),
        (Request(body_of(*(entry(host=name) for name in "abc"))), {"resources_max": 2}, "malformed"),
        (Request(delay_s=60.0), {"request_timeout_ms": 1}, "request.timeout.ms"),
        (Request(), {"requests_max": 0}, "requests.max"),
    ],
    ids=range(14),
)
def test_a_refusal_is_counted_by_the_bound(request_: Request, fields: dict[str, Any], expected: str) -> None:
    log = Log()

    assert answers(log, request_, **fields) == [expected]
    assert log.outcomes == {expected: 1}
    assert log.stored == []


def test_a_request_waits_for_the_memory_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 30.0)

    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(Log(), buffer_max_bytes=len(THREE))
        requests = [Request(delay_s=0.001, announced_bytes=len(THREE)) for _ in range(5)]
        return await asyncio.gather(*(outcome(reception, request) for request in requests))

    assert asyncio.run(run()) == [ACCEPTED] * 5


def test_requests_beyond_the_number_are_refused_at_once() -> None:
    async def run() -> list[ExportMetricsServiceResponse | str]:
        reception = reception_of(log, requests_max=2)
        log.open.clear()
        first = [asyncio.ensure_future(outcome(reception, Request(body))) for body in (THREE, OTHER)]
        await log.asked.wait()
        third = await outcome(reception, Request())
        log.open.set()
        return [third, *await asyncio.gather(*first)]

    log = Log()

    assert asyncio.run(run()) == ["requests.max", ACCEPTED, ACCEPTED]


def test_what_is_being_stored_ends_with_the_source() -> None:
    async def run() -> int:
        reception = reception_of(log)
        log.open.clear()
        export = asyncio.ensure_future(reception.export(Request()))
        await log.asked.wait()
        await reception.close()
        await asyncio.wait({export})
        return reception.held_bytes

    log = Log()

    assert asyncio.run(run()) == 0
    assert log.stored == []

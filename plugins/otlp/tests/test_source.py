"""The source: the contract kit, the answers to good and bad requests, and the records it makes."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.plugin import Receipt, Refused, TelemetryRecord
from odradek.testing.contracts import SourceContract, Subject
from odradek_otlp.otlp_source import OtlpSource
from odradek_otlp.rpc_status import read_status
from odradek_otlp.source_settings import SourceSettings
from support.waiting import wait_until

PROTOBUF = "application/x-protobuf"
PATIENCE_S = 10.0
STEP_S = 0.01


def entry(metric: str = "load", points: int = 1, **attributes: str) -> ResourceMetrics:
    pairs = [
        KeyValue(key=key.replace("__", "."), value=AnyValue(string_value=value))
        for key, value in attributes.items()
    ]
    gauge = Gauge(data_points=[NumberDataPoint(as_int=7) for _ in range(points)])
    scope = ScopeMetrics(metrics=[Metric(name=metric, gauge=gauge)])
    return ResourceMetrics(resource=Resource(attributes=pairs), scope_metrics=[scope])


def body_of(*entries: ResourceMetrics) -> bytes:
    return MetricsData(resource_metrics=entries).SerializeToString()


GOOD = body_of(entry(service__name="billing"))


@dataclass(eq=False)
class Host:
    """An intake with a script."""

    refuse: Callable[[TelemetryRecord], str | None] = lambda record: None
    room: bool = True
    stored: list[TelemetryRecord] = field(default_factory=list)
    unread: int = 0

    async def store(self, records: Sequence[TelemetryRecord]) -> Receipt:
        if not self.room:
            return Receipt(left=list(records))
        refused = [Refused(record, why) for record in records if (why := self.refuse(record))]
        named = {id(each.record) for each in refused}
        self.stored += [record for record in records if id(record) not in named]
        return Receipt(stored=len(records) - len(refused), refused=refused)

    def unreadable(self, records: int) -> None:
        self.unread += records


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        return read_status(self.body).message


@contextmanager
def running(host: Host, **fields: Any) -> Iterator[int]:
    """The port of a source that runs on a thread of its own."""
    source = OtlpSource(SourceSettings(host="127.0.0.1", port=0, **fields))
    loop = asyncio.new_event_loop()
    task = loop.create_task(source.run(host))

    def live() -> None:
        try:
            loop.run_until_complete(asyncio.wait({task}))
        finally:
            loop.close()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        wait_until(lambda: source.port, "the source listens")
        assert source.port is not None
        yield source.port
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(PATIENCE_S)
    assert source.held_bytes == 0


def post(
    port: int, body: bytes = GOOD, path: str = "/v1/metrics", method: str = "POST", **headers: str
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {"Content-Type": PROTOBUF, **given})
        response = connection.getresponse()
        return Answer(response.status, response.read(), dict(response.getheaders()))
    finally:
        connection.close()


def test_metrics_are_stored_before_the_answer() -> None:
    host = Host()

    with running(host) as port:
        answer = post(port)
        found = list(host.stored)

    assert (answer.status, answer.headers["Content-Type"]) == (200, PROTOBUF)
    assert not ExportMetricsServiceResponse.FromString(answer.body).HasField("partial_success")
    assert [record.payload.data for record in found] == [GOOD]


def test_a_body_may_be_compressed() -> None:
    host = Host()

    with running(host) as port:
        answer = post(port, gzip.compress(GOOD), Content_Encoding="gzip")

    assert answer.status == 200
    assert [record.payload.data for record in host.stored] == [GOOD]


def test_a_request_without_metrics_is_accepted() -> None:
    host = Host()

    with running(host) as port:
        answer = post(port, b"")

    assert answer.status == 200
    assert host.stored == []


BOMB = gzip.compress(bytes(1 << 20))
BAD: list[tuple[int, str, dict[str, Any]]] = [
    (404, "/v1/metrics", {"path": "/v1/traces"}),
    (405, "expected POST", {"method": "PUT"}),
    (415, "application/json", {"Content_Type": "application/json"}),
    (415, "br", {"Content_Encoding": "br"}),
    (400, "not OTLP metrics", {"body": b"\xff\xfe junk"}),
    (400, "not gzip", {"body": b"junk", "Content_Encoding": "gzip"}),
    (400, "cut off", {"body": gzip.compress(GOOD)[:-9], "Content_Encoding": "gzip"}),
    (413, "source.request.max.bytes", {"body": bytes(5_001)}),
    (413, "when decompressed", {"body": BOMB, "Content_Encoding": "gzip"}),
]


@pytest.mark.parametrize(("status", "text", "request_"), BAD, ids=[f"{bad[0]}-{bad[1]}" for bad in BAD])
def test_a_bad_request_is_refused_with_the_reason(status: int, text: str, request_: dict[str, Any]) -> None:
    host = Host()

    with running(host, request_max_bytes=5_000) as port:
        answer = post(port, **request_)
        after = post(port)

    assert answer.status == status
    assert text in answer.message
    assert after.status == 200
    assert len(host.stored) == 1


def test_a_refused_record_is_a_partial_success() -> None:
    host = Host(refuse=lambda record: "too large" if record.context.client_id == "b" else None)
    body = body_of(entry(service__name="a"), entry(points=3, service__name="b"))

    with running(host) as port:
        answer = post(port, body)

    found = ExportMetricsServiceResponse.FromString(answer.body).partial_success
    assert answer.status == 200
    assert (found.rejected_data_points, found.error_message) == (3, "too large")
    assert [record.context.client_id for record in host.stored] == ["a"]


def test_without_room_the_sender_is_asked_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.otlp_source.ROOM_S", 0.0)
    host = Host(room=False)

    with running(host) as port:
        answer = post(port)
        host.room = True
        again = post(port)

    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert "no room" in answer.message
    assert again.status == 200


def test_requests_beyond_the_memory_are_asked_to_come_again() -> None:
    host = Host()

    with running(host, request_max_bytes=1_000, buffer_max_bytes=1_000) as port:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as slow:
            lines = (
                "POST /v1/metrics HTTP/1.1",
                "Host: x",
                f"Content-Type: {PROTOBUF}",
                "Content-Length: 990",
            )
            slow.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
            answer = until_status(port, 503)
        after = until_status(port, 200)

    assert "source.buffer.max.bytes" in answer.message
    assert after.status == 200


def until_status(port: int, status: int) -> Answer:
    def answered() -> Answer | None:
        answer = post(port)
        return answer if answer.status == status else None

    answer = wait_until(answered, f"a request is answered with {status}")
    assert answer is not None
    return answer


def test_connections_beyond_the_limit_are_closed() -> None:
    host = Host()

    with running(host, connections_max=1) as port:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as first:
            first.sendall(b"POST /v1/metrics HTTP/1.1\r\n")
            until_closed(port, closed=True)
        until_closed(port, closed=False)

    assert host.stored


def until_closed(port: int, *, closed: bool) -> None:
    """Wait until new connections are closed, or served again."""

    def is_closed() -> bool:
        try:
            post(port)
        except (ConnectionError, http.client.HTTPException):
            return True
        return False

    wait_until(lambda: is_closed() is closed, "connections are still " + ("served" if closed else "closed"))


def test_a_token_of_the_file_is_required(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("one\ntwo\n")
    host = Host()

    with running(host, token_file=tokens) as port:
        found = [post(port, Authorization=text).status for text in ("Bearer two", "bearer one")]
        bad = [post(port, Authorization=text) for text in ("Bearer three", "Basic one", "one", "Bearer ")]
        without = post(port)
        tokens.write_text("three\n")
        renewed = post(port, Authorization="Bearer three")

    assert found == [200, 200]
    assert [answer.status for answer in bad] == [401] * 4
    assert without.headers["WWW-Authenticate"] == "Bearer"
    assert renewed.status == 200
    assert {record.context.connection.principal for record in host.stored} == {"User:otlp"}


# The contract


@dataclass(eq=False)
class Exporter:
    """Sends each push until it is stored or refused for good, from a thread."""

    port: int

    def put(self, pushes: Sequence[TelemetryRecord]) -> None:
        bodies = [push.payload.data for push in pushes]
        threading.Thread(target=self.send, args=(bodies,), daemon=True).start()

    def send(self, bodies: Sequence[bytes]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        for body in bodies:
            while time.monotonic() < deadline_s:
                try:
                    status = post(self.port, body).status
                except (OSError, http.client.HTTPException):
                    status = 503
                if status in (200, 400):
                    break
                time.sleep(STEP_S)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


class TestSource(SourceContract):
    @pytest.fixture
    def subject(self) -> Subject:
        settings = SourceSettings(host="127.0.0.1", port=free_port())
        return Subject(make=lambda: OtlpSource(settings), supply=Exporter(settings.port))

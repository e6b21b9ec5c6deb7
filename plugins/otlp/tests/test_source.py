"""The source: the contract kit, the answers to good and bad requests, and the records it makes."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.ports import free_port
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.endpoints import Address
from odradek.plugin import TelemetryRecord
from odradek.testing.contracts import SourceContract, Subject
from odradek_otlp.otlp_source import OtlpSource
from odradek_otlp.rpc_status import read_status
from odradek_otlp.source_settings import SourceSettings
from support.otlp_source import ANYWHERE, ScriptedIntake, body_of, entry, running_source
from support.waiting import wait_until

PROTOBUF = "application/x-protobuf"
PATIENCE_S = 30.0
STEP_S = 0.01


GOOD = body_of(entry(service__name="billing"))


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        return read_status(self.body).message


def running(host: ScriptedIntake, **fields: Any) -> AbstractContextManager[int]:
    return running_source(host, http=ANYWHERE, **fields)


def post(
    port: int,
    body: bytes | Iterable[bytes] = GOOD,
    path: str = "/v1/metrics",
    method: str = "POST",
    **headers: str,
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
    host = ScriptedIntake()

    with running(host) as port:
        answer = post(port)
        found = list(host.stored)

    assert (answer.status, answer.headers["Content-Type"]) == (200, PROTOBUF)
    assert not ExportMetricsServiceResponse.FromString(answer.body).HasField("partial_success")
    assert [record.payload.data for record in found] == [GOOD]


def test_a_body_may_be_compressed() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        answer = post(port, gzip.compress(GOOD), Content_Encoding="gzip")

    assert answer.status == 200
    assert [record.payload.data for record in host.stored] == [GOOD]


def test_a_request_without_metrics_is_accepted() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        answer = post(port, b"")

    assert answer.status == 200
    assert host.stored == []


BOMB = gzip.compress(bytes(1 << 20))
BAD: list[tuple[int, str, dict[str, Any]]] = [
    (404, "/v1/metrics", {"path": "/v1/traces"}),
    (405, "expected POST", {"method": "PUT"}),
    (415, "text/plain", {"Content_Type": "text/plain"}),
    (415, "br", {"Content_Encoding": "br"}),
    (400, "not OTLP metrics", {"body": b"\xff\xfe junk"}),
    (400, "not gzip", {"body": b"junk", "Content_Encoding": "gzip"}),
    (400, "cut off", {"body": gzip.compress(GOOD)[:-9], "Content_Encoding": "gzip"}),
    (413, "source.request.max.bytes", {"body": bytes(5_001)}),
    (413, "when decompressed", {"body": BOMB, "Content_Encoding": "gzip"}),
]


@pytest.mark.parametrize(("status", "text", "request_"), BAD, ids=[f"{bad[0]}-{bad[1]}" for bad in BAD])
def test_a_bad_request_is_refused_with_the_reason(status: int, text: str, request_: dict[str, Any]) -> None:
    host = ScriptedIntake()

    with running(host, request_max_bytes=5_000) as port:
        answer = post(port, **request_)
        after = post(port)

    assert answer.status == status
    assert text in answer.message
    assert after.status == 200
    assert len(host.stored) == 1


GOOD_JSON = json.dumps(
    {
        "resourceMetrics": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "billing"}}]},
                "scopeMetrics": [{"metrics": [{"name": "load", "gauge": {"dataPoints": [{"asInt": "7"}]}}]}],
            }
        ]
    }
).encode()


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_json_is_stored_as_protobuf(encoding: str) -> None:
    host = ScriptedIntake()
    body = gzip.compress(GOOD_JSON) if encoding == "gzip" else GOOD_JSON

    with running(host) as port:
        answer = post(port, body, Content_Type="application/json; charset=utf-8", Content_Encoding=encoding)

    assert (answer.status, answer.body) == (200, b"{}")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert [record.payload.data for record in host.stored] == [GOOD]


def test_the_answer_to_json_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    host = ScriptedIntake(refuse=lambda record: "too large")

    with running(host, json_max_bytes=10_000) as port:
        partial = post(port, GOOD_JSON, Content_Type="application/json")
        malformed = post(port, b"{", Content_Type="application/json")
        large = post(port, GOOD_JSON + bytes(10_000), Content_Type="application/json")
        deep = post(port, b"[" * 9_999, Content_Type="application/json")
        host.room = False
        full = post(port, GOOD_JSON, Content_Type="application/json")

    assert json.loads(partial.body)["partialSuccess"] == {
        "rejectedDataPoints": "1",
        "errorMessage": "too large",
    }
    refused = [malformed, large, deep, full]
    assert [answer.status for answer in refused] == [400, 413, 400, 503]
    assert [json.loads(answer.body)["code"] for answer in refused] == [3, 8, 3, 14]
    assert "source.json.max.bytes" in json.loads(large.body)["message"]
    assert full.headers["Retry-After"] == "5"


def test_beyond_the_number_of_requests_the_sender_is_asked_to_try_again() -> None:
    host = ScriptedIntake()

    with running(host, requests_max=1) as port:
        with half_a_request(port):
            wait_until(lambda: host.receiving, "the request has not begun")
            answer = post(port)
        until_status(port, 200)

    assert (answer.status, answer.headers["Retry-After"]) == (429, "5")
    assert "source.requests.max" in answer.message


def test_a_slow_body_is_not_waited_for_forever() -> None:
    host = ScriptedIntake()

    with running(host, request_timeout_ms=50) as port, half_a_request(port) as slow:
        answer = slow.recv(4_096)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert host.outcomes == {"request.timeout.ms": 1}


def test_half_a_request_leaves_nothing() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        with half_a_request(port):
            wait_until(lambda: host.receiving, "the request has not begun")
        wait_until(lambda: host.outcomes, "the request is not abandoned")
        chunked = post(port, iter([GOOD[:9], GOOD[9:]]))

    assert chunked.status == 200
    assert host.outcomes == {"abandoned": 1, "accepted": 1}
    assert len(host.stored) == 1


def test_a_refused_record_is_a_partial_success() -> None:
    host = ScriptedIntake(refuse=lambda record: "too large" if record.context.client_id == "b" else None)
    body = body_of(entry(service__name="a"), entry(points=3, service__name="b"))

    with running(host) as port:
        answer = post(port, body)

    found = ExportMetricsServiceResponse.FromString(answer.body).partial_success
    assert answer.status == 200
    assert (found.rejected_data_points, found.error_message) == (3, "too large")
    assert [record.context.client_id for record in host.stored] == ["a"]


def test_without_room_the_sender_is_asked_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    host = ScriptedIntake(room=False)

    with running(host) as port:
        answer = post(port)
        host.room = True
        again = post(port)

    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert "no room" in answer.message
    assert again.status == 200


def test_requests_beyond_the_memory_are_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    host = ScriptedIntake()

    with running(host, request_max_bytes=1_000, buffer_max_bytes=1_000) as port:
        with half_a_request(port):
            wait_until(lambda: host.receiving, "the request has not begun")
            answer = until_status(port, 503)
        after = until_status(port, 200)

    assert "source.buffer.max.bytes" in answer.message
    assert after.status == 200


@contextmanager
def half_a_request(port: int) -> Iterator[socket.socket]:
    """A connection whose request lacks its body."""
    lines = ("POST /v1/metrics HTTP/1.1", "Host: x", f"Content-Type: {PROTOBUF}", "Content-Length: 990")
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        yield connection


def until_status(port: int, status: int) -> Answer:
    def answered() -> Answer | None:
        answer = post(port)
        return answer if answer.status == status else None

    answer = wait_until(answered, f"a request is answered with {status}")
    assert answer is not None
    return answer


def test_connections_beyond_the_limit_are_closed() -> None:
    host = ScriptedIntake()

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
    host = ScriptedIntake()

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


class TestSource(SourceContract):
    @pytest.fixture
    def subject(self) -> Subject:
        address = Address("127.0.0.1", free_port())
        settings = SourceSettings(http=address)
        return Subject(make=lambda: OtlpSource(settings), supply=Exporter(address.port))

"""The listener for OTLP over gRPC: answers, metadata, compression, TLS, and hostile senders."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from odradek.endpoints import ListenerTls
from odradek.security.private_ca import LOOPBACK, PrivateCa
from odradek_otlp.grpc_listener import address_of
from odradek_otlp.rpc_status import read_status
from support.certificates import authority, other_authority
from support.otlp_source import ANYWHERE, ScriptedIntake, body_of, entry, running_source
from support.waiting import wait_until

METHOD = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
GOOD = body_of(entry(service__name="billing"))
PATIENCE_S = 30.0
LOST = {"incomplete", "abandoned"}
"""gRPC itself refused the message: its handler sees only that nothing came."""


def running(host: ScriptedIntake, **fields: Any) -> AbstractContextManager[int]:
    return running_source(host, grpc=ANYWHERE, **fields)


@contextmanager
def channel_to(port: int, credentials: grpc.ChannelCredentials | None = None) -> Iterator[grpc.Channel]:
    options = (("grpc.use_local_subchannel_pool", 1),)
    target = f"localhost:{port}"
    if credentials is None:
        channel = grpc.insecure_channel(target, options)
    else:
        channel = grpc.secure_channel(target, credentials, options)
    with channel:
        yield channel


@contextmanager
def silent() -> Iterator[Iterator[bytes]]:
    """Yield a stream of requests that sends nothing before the end of the block."""
    ended = threading.Event()

    def requests() -> Iterator[bytes]:
        ended.wait(PATIENCE_S)
        yield from ()

    try:
        yield requests()
    finally:
        ended.set()


def export(
    port: int,
    body: bytes = GOOD,
    credentials: grpc.ChannelCredentials | None = None,
    compression: grpc.Compression = grpc.Compression.NoCompression,
    **metadata: str,
) -> bytes:
    with channel_to(port, credentials) as channel:
        call = channel.unary_unary(METHOD, None, None)
        given = tuple(metadata.items())
        answer: bytes = call(body, timeout=PATIENCE_S, metadata=given, compression=compression)
        return answer


def refusal(port: int, body: bytes = GOOD, **more: Any) -> grpc.Call:
    with pytest.raises(grpc.RpcError) as caught:
        export(port, body, **more)
    assert isinstance(caught.value, grpc.Call)
    return caught.value


def retry_after_s(call: grpc.Call) -> float | None:
    trailing = {str(key): value for key, value in call.trailing_metadata()}
    details = trailing["grpc-status-details-bin"]
    assert isinstance(details, bytes)
    assert read_status(details).message == call.details()
    return read_status(details).retry_after_s


def test_metrics_are_stored_before_the_answer() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        answer = export(port)
        found = list(host.stored)

    assert not ExportMetricsServiceResponse.FromString(answer).HasField("partial_success")
    assert [record.payload.data for record in found] == [GOOD]
    assert found[0].context.connection.client_address in ("127.0.0.1", "::1")
    assert found[0].context.connection.client_port > 0
    assert found[0].context.connection.principal == "User:ANONYMOUS"
    assert host.outcomes == {"accepted": 1}


def test_a_message_may_be_compressed() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        export(port, GOOD * 10, compression=grpc.Compression.Gzip)

    assert [record.payload.data for record in host.stored] == [GOOD * 10]


def test_a_request_without_metrics_is_accepted() -> None:
    host = ScriptedIntake()

    with running(host) as port:
        assert export(port, b"") == b""


def test_a_refused_record_is_a_partial_success() -> None:
    host = ScriptedIntake(refuse=lambda record: "too large" if record.context.client_id == "b" else None)
    body = body_of(entry(service__name="a"), entry(points=3, service__name="b"))

    with running(host) as port:
        answer = ExportMetricsServiceResponse.FromString(export(port, body))

    assert answer.partial_success.rejected_data_points == 3
    assert answer.partial_success.error_message == "too large"
    assert host.outcomes == {"partial": 1}


def test_without_room_the_sender_is_asked_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    host = ScriptedIntake(room=False)

    with running(host) as port:
        refused = refusal(port)

    assert refused.code() is grpc.StatusCode.UNAVAILABLE
    assert retry_after_s(refused) == 5.0


def test_beyond_the_number_of_requests_the_sender_is_asked_to_try_again() -> None:
    host = ScriptedIntake()

    with running(host, requests_max=1) as port, channel_to(port) as channel, silent() as silence:
        held = channel.stream_unary(METHOD, None, None).future(silence, timeout=PATIENCE_S)
        wait_until(lambda: host.receiving, "the request has not begun")
        refused = refused_call(port)
        held.cancel()  # type: ignore[no-untyped-call]
        wait_until(lambda: refused_call(port) is None, "requests are still refused")

    assert refused is not None
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert retry_after_s(refused) == 5.0


def key_store_of(issuer: PrivateCa) -> str:
    return issuer.issue("localhost", LOOPBACK).both


def credentials_of(issuer: PrivateCa) -> grpc.ChannelCredentials:
    """A sender that trusts an authority and has a certificate of it."""
    issued = issuer.issue("sender")
    ca, key, certificate = (
        text.encode() for text in (issuer.issued.certificate, issued.key, issued.certificate)
    )
    return grpc.ssl_channel_credentials(ca, key, certificate)


def is_shut_out(port: int, credentials: grpc.ChannelCredentials) -> bool:
    return refusal(port, credentials=credentials).code() is grpc.StatusCode.UNAVAILABLE


def refused_call(port: int) -> grpc.Call | None:
    try:
        export(port)
    except grpc.RpcError as error:
        return cast("grpc.Call", error)
    return None


def test_a_message_that_does_not_come_is_not_waited_for_forever() -> None:
    host = ScriptedIntake()

    with (
        running(host, request_timeout_ms=50) as port,
        channel_to(port) as channel,
        silent() as silence,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.stream_unary(METHOD, None, None)(silence, timeout=PATIENCE_S)

    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "source.request.timeout.ms" in (caught.value.details() or "")
    assert host.outcomes == {"request.timeout.ms": 1}


@pytest.mark.parametrize(
    ("body", "compression", "code", "outcomes"),
    [
        (b"\xff\xfe junk", grpc.Compression.NoCompression, "INVALID_ARGUMENT", {"malformed"}),
        (gzip.compress(GOOD)[:-9], grpc.Compression.NoCompression, "INVALID_ARGUMENT", {"malformed"}),
        (bytes(9_000), grpc.Compression.NoCompression, "RESOURCE_EXHAUSTED", LOST),
        (bytes(1 << 20), grpc.Compression.Gzip, "RESOURCE_EXHAUSTED", {"request.max.bytes"}),
        (GOOD, grpc.Compression.Deflate, "UNIMPLEMENTED", LOST),
    ],
    ids=["junk", "cut", "large", "bomb", "deflate"],
)
def test_a_bad_request_is_refused(
    body: bytes, compression: grpc.Compression, code: str, outcomes: set[str]
) -> None:
    host = ScriptedIntake()

    with running(host, request_max_bytes=8_000) as port:
        refused = refusal(port, body, compression=compression)
        export(port)

    assert refused.code().name == code
    assert host.outcomes.pop("accepted") == 1
    assert set(host.outcomes) <= outcomes
    assert host.outcomes.total() == 1


def test_another_service_is_not_implemented() -> None:
    method = METHOD.replace("Metrics", "Trace").replace("metrics", "trace")

    with (
        running(ScriptedIntake()) as port,
        channel_to(port) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary(method, None, None)(b"", timeout=PATIENCE_S)

    assert isinstance(caught.value, grpc.Call)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_token_is_required(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("one\ntwo\n")
    host = ScriptedIntake()

    with running(host, token_file=tokens) as port:
        export(port, authorization="Bearer two")
        bad = [refusal(port, authorization=text).code() for text in ("Bearer three", "two")]
        bad.append(refusal(port).code())

    assert bad == [grpc.StatusCode.UNAUTHENTICATED] * 3
    assert host.outcomes == {"accepted": 1, "unauthenticated": 3}
    assert [record.context.connection.principal for record in host.stored] == ["User:otlp"]


def test_connections_beyond_the_limit_are_closed() -> None:
    host = ScriptedIntake()

    with running(host, connections_max=1) as port:
        with channel_to(port) as channel:
            channel.unary_unary(METHOD, None, None)(GOOD, timeout=PATIENCE_S)
            refused = refusal(port)
        wait_until(lambda: refused_call(port) is None, "connections are still closed")

    assert refused.code() is grpc.StatusCode.UNAVAILABLE


def test_junk_instead_of_http2_closes_the_connection() -> None:
    with running(ScriptedIntake()) as port:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while connection.recv(4_096):
                pass
        export(port)


def test_the_files_of_tls_may_be_renewed(tmp_path: Path) -> None:
    key_store = tmp_path / "host.pem"
    key_store.write_text(key_store_of(authority()))
    ca = tmp_path / "senders.pem"
    ca.write_text(authority().issued.certificate)
    tls = ListenerTls(certificate=key_store, client_ca=ca)
    ours, theirs = credentials_of(authority()), credentials_of(other_authority())
    host = ScriptedIntake()

    with running(host, tls=tls) as port:
        export(port, credentials=ours)
        assert is_shut_out(port, theirs)
        assert is_shut_out(port, grpc.ssl_channel_credentials(authority().issued.certificate.encode()))
        key_store.write_text("junk")
        export(port, credentials=ours)
        key_store.write_text(key_store_of(other_authority()))
        ca.write_text(other_authority().issued.certificate)
        export(port, credentials=theirs)
        assert is_shut_out(port, ours)

    assert {record.context.connection.principal for record in host.stored} == {"User:otlp"}
    assert {record.context.connection.security_protocol for record in host.stored} == {"SSL"}


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("ipv4:127.0.0.1:4317", ("127.0.0.1", 4317)),
        ("ipv6:[::1]:4317", ("::1", 4317)),
        ("ipv6:%5B::1%5D:4317", ("::1", 4317)),
        ("", ("", 0)),
    ],
)
def test_the_address_of_a_peer(peer: str, expected: tuple[str, int]) -> None:
    assert address_of(peer) == expected

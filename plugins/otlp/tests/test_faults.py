"""Destinations that are slow, silent, cut off, selective, or change their credentials."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from odradek.plugin import PluginConfig, Reject, Retry, TelemetryRecord
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_table import read_settings
from support.accepting import waiting_connections_are_made

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Answer, Kit, Sink

PROTOCOLS = ["http/protobuf", "grpc"]
POISON = b"poison"


def forwarder_of(port: int, protocol: str, **table: object) -> OtlpForwarder:
    values = {name.replace("__", "."): value for name, value in table.items()}
    values |= {"endpoint": f"http://127.0.0.1:{port}", "protocol": protocol}
    settings = read_settings(PluginConfig("plugins.otlp", values), {})
    assert settings is not None
    return OtlpForwarder(settings, user_agent="odradek-otlp/test")


def with_forwarder(
    kit: Kit,
    protocol: str,
    work: Callable[[OtlpForwarder, Sink], Awaitable[None]],
    *script: Answer,
    **table: object,
) -> Sink:
    """Run a coroutine with an endpoint and a started forwarder, and close both."""

    async def run() -> Sink:
        async with (
            (kit.grpc if protocol == "grpc" else kit.http)(*script) as sink,
            started(forwarder_of(sink.port, protocol, **table)) as forwarder,
        ):
            await work(forwarder, sink)
        return sink

    return asyncio.run(run())


async def delivered_at_last(forwarder: OtlpForwarder, batch: list[TelemetryRecord]) -> None:
    """Deliver a batch, as the host does: again if the forwarder asks for it."""
    for _attempt in range(100):
        try:
            return await forwarder.deliver(batch)
        except Retry:
            await asyncio.sleep(0.05)
    raise AssertionError("no attempt was successful")


@contextlib.asynccontextmanager
async def started(forwarder: OtlpForwarder) -> AsyncIterator[OtlpForwarder]:
    await forwarder.start()
    try:
        yield forwarder
    finally:
        await forwarder.close()


def refusal(kit: Kit, protocol: str, retryable: bool) -> Answer:
    if protocol == "grpc":
        code = grpc.StatusCode.UNAVAILABLE if retryable else grpc.StatusCode.INVALID_ARGUMENT
        return kit.answer(code=code, message="no")
    return kit.answer(status=503 if retryable else 400, message="no", content_type="text/plain")


def stranger(kit: Kit, protocol: str, meanwhile: Callable[[], object] = lambda: None) -> Answer:
    """The destination does not know the token."""
    if protocol == "grpc":
        return kit.answer(code=grpc.StatusCode.UNAUTHENTICATED, message="who?", meanwhile=meanwhile)
    return kit.answer(status=401, message="who?", content_type="text/plain", meanwhile=meanwhile)


def clients(kit: Kit, count: int, *poisoned: int) -> list[TelemetryRecord]:
    """A push of each of many clients; some have a metric that the destination refuses."""
    names = ["poison" if number in poisoned else f"metric.{number}" for number in range(count)]
    return [
        kit.record(f"client-{number}", name, instance_id=number.to_bytes(16))
        for number, name in enumerate(names)
    ]


async def settled(forwarder: OtlpForwarder, batch: Sequence[TelemetryRecord]) -> list[TelemetryRecord]:
    """Deliver as the host does, halving a refused batch; return the records refused alone."""
    try:
        await forwarder.deliver(batch)
    except Reject as error:
        done = {id(record) for record in (*error.records, *error.delivered)}
        left = [record for record in batch if id(record) not in done]
        found = list(error.records)
        if error.records or not left:
            return found + (await settled(forwarder, left) if left else [])
        half = -(-len(left) // 2)
        return [*await settled(forwarder, left[:half]), *await settled(forwarder, left[half:])]
    return []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_bad_record_in_a_thousand_is_found_and_the_others_arrive_once(kit: Kit, protocol: str) -> None:
    batch = clients(kit, 1_000, 617)
    found: list[TelemetryRecord] = []

    async def deliver(forwarder: OtlpForwarder, sink: Sink) -> None:
        sink.judge = lambda body: refusal(kit, protocol, False) if POISON in body else kit.answer()
        found.extend(await settled(forwarder, batch))

    sink = with_forwarder(kit, protocol, deliver)

    assert found == [batch[617]]
    arrived = [
        metric.name
        for request in sink.requests()
        for entry in request.resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
        if POISON not in request.SerializeToString()
    ]
    assert sorted(arrived) == sorted(f"metric.{number}" for number in range(1_000) if number != 617)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_several_requests_only_the_failed_ones_are_repeated(kit: Kit, protocol: str) -> None:
    batch = clients(kit, 120, 5)
    raised: list[Retry] = []

    async def deliver(forwarder: OtlpForwarder, sink: Sink) -> None:
        sink.judge = lambda body: refusal(kit, protocol, True) if POISON in body else kit.answer()
        with pytest.raises(Retry) as caught:
            await forwarder.deliver(batch)
        raised.append(caught.value)

    sink = with_forwarder(kit, protocol, deliver)

    assert len(sink.bodies) == 3
    assert len(raised[0].delivered) == 80
    assert not any(POISON in record.payload.data for record in raised[0].delivered)


def test_a_retry_wins_over_a_rejection(kit: Kit) -> None:
    batch = clients(kit, 120, 5)
    answers = [
        refusal(kit, "http/protobuf", True),
        kit.answer(status=429, headers={"Retry-After": "7"}),
        refusal(kit, "http/protobuf", False),
    ]

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises(Retry) as caught:
            await forwarder.deliver(batch)
        assert caught.value.after_s == 7
        assert caught.value.delivered == []

    with_forwarder(kit, "http/protobuf", deliver, *answers)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_several_requests_are_in_flight_at_a_time(kit: Kit, protocol: str) -> None:
    batch = clients(kit, 160)

    async def deliver(forwarder: OtlpForwarder, sink: Sink) -> None:
        with pytest.raises(Retry):
            await forwarder.deliver(batch)
        assert len(sink.bodies) == 3

    hanging = [kit.answer(delay_s=30)] * 3
    with_forwarder(kit, protocol, deliver, *hanging, timeout__ms=1_500, requests__in__flight=3)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_revoked_token_is_a_retry(kit: Kit, protocol: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    batch = [kit.record("orders", "a")]

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        for _attempt in range(2):
            with pytest.raises(Retry, match="who"):
                await forwarder.deliver(batch)
        token.write_text("second")
        await forwarder.deliver(batch)

    script = [stranger(kit, protocol), stranger(kit, protocol)]
    sink = with_forwarder(kit, protocol, deliver, *script, bearer__token__file=str(token))

    assert [headers["authorization"] for headers in sink.headers] == [
        "Bearer first",
        "Bearer first",
        "Bearer second",
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_renewed_token_is_used_at_once(kit: Kit, protocol: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    renewed = stranger(kit, protocol, lambda: token.write_text("second"))

    sink = with_forwarder(
        kit,
        protocol,
        lambda forwarder, _: forwarder.deliver([kit.record("orders", "a")]),
        renewed,
        bearer__token__file=str(token),
    )

    assert [headers["authorization"] for headers in sink.headers] == ["Bearer first", "Bearer second"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_all_requests_in_flight_use_a_renewed_token(kit: Kit, protocol: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    renewed = stranger(kit, protocol, lambda: token.write_text("second"))
    renewed.delay_s = 0.1

    sink = with_forwarder(
        kit,
        protocol,
        lambda forwarder, _: forwarder.deliver(clients(kit, 120)),
        *[renewed] * 3,
        bearer__token__file=str(token),
    )

    assert sorted(headers["authorization"] for headers in sink.headers) == [
        *["Bearer first"] * 3,
        *["Bearer second"] * 3,
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_new_token_that_is_refused_too_is_a_retry(kit: Kit, protocol: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    script = [stranger(kit, protocol, lambda: token.write_text("second")), stranger(kit, protocol)]

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises(Retry, match="who"):
            await forwarder.deliver([kit.record("orders", "a")])

    sink = with_forwarder(kit, protocol, deliver, *script, bearer__token__file=str(token))

    assert len(sink.bodies) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_filter_sends_only_metrics_with_its_prefixes(kit: Kit, protocol: str) -> None:
    batch = [kit.record("orders", "producer.a", "consumer.a"), kit.record("billing", "consumer.b")]

    sink = with_forwarder(
        kit, protocol, lambda forwarder, _: forwarder.deliver(batch), metrics=["producer.", "admin."]
    )

    (request,) = sink.requests()
    (entry,) = request.resource_metrics
    assert [metric.name for metric in entry.scope_metrics[0].metrics] == ["producer.a"]


def test_a_batch_that_the_filter_empties_is_not_sent(kit: Kit) -> None:
    batch = [kit.record("orders", "consumer.a")]

    sink = with_forwarder(
        kit, "http/protobuf", lambda forwarder, _: forwarder.deliver(batch), metrics=["producer."]
    )

    assert sink.bodies == []


def test_a_filter_rejects_records_it_cannot_read(kit: Kit) -> None:
    batch = clients(kit, 3)
    batch[1].payload.data = b"\xff\xff"

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises(Reject, match="not MetricsData") as caught:
            await forwarder.deliver(batch)
        assert caught.value.records == [batch[1]]

    sink = with_forwarder(kit, "http/protobuf", deliver, metrics=["metric."])

    assert sink.bodies == []


Behavior = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(-1)


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"x: y\r\n")
        await asyncio.sleep(0.01)


async def disconnects_during_the_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(1_000)
    writer.transport.abort()


async def answers_partially(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readexactly(1_000)
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 100\r\n\r\nhalf"
    )
    await writer.drain()
    writer.close()


def against(protocol: str, behavior: Behavior, kit: Kit, scheme: str = "http", **table: object) -> str:
    """The reason why a large push was not delivered to a server with this behavior."""

    async def run() -> str:
        serving: list[asyncio.Task[None]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                with contextlib.suppress(ConnectionError, EOFError):
                    await behavior(reader, writer)
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

        def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.append(asyncio.create_task(serve(reader, writer)))

        server = await asyncio.start_server(served, "127.0.0.1", 0)
        values = {name.replace("__", "."): value for name, value in table.items()}
        values |= {
            "endpoint": f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}",
            "protocol": protocol,
        }
        settings = read_settings(PluginConfig("plugins.otlp", values), {})
        assert settings is not None
        async with started(OtlpForwarder(settings, "odradek-otlp/test")) as forwarder:
            with pytest.raises(Retry) as caught:
                await forwarder.deliver([kit.record("orders", *["x" * 100_000] * 30)])
        await waiting_connections_are_made()
        server.close()
        while waiting := [each for each in serving if not each.done()]:
            await asyncio.wait_for(asyncio.gather(*waiting), 10)  # the forwarder has disconnected
        return str(caught.value)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        (never_answers, "no answer within 200 ms"),
        (drips, "no answer within 200 ms"),
        (disconnects_during_the_request, ""),
        (answers_partially, ""),
    ],
)
def test_a_misbehaving_server_is_a_retry(kit: Kit, behavior: Behavior, reason: str) -> None:
    found = against("http/protobuf", behavior, kit, timeout__ms=200)

    assert reason in found


@pytest.mark.parametrize("behavior", [never_answers, disconnects_during_the_request, drips])
def test_grpc_retries_too(kit: Kit, behavior: Behavior) -> None:
    found = against("grpc", behavior, kit, timeout__ms=400)

    assert found.startswith(("gRPC UNAVAILABLE", "gRPC DEADLINE_EXCEEDED"))


def test_a_hanging_handshake_times_out_before_the_request(kit: Kit) -> None:
    found = against(
        "http/protobuf", never_answers, kit, scheme="https", timeout__ms=10_000, connect__timeout__ms=100
    )

    assert found == "no connection within 100 ms"


def test_a_hanging_grpc_handshake_times_out_before_the_request(kit: Kit) -> None:
    found = against("grpc", never_answers, kit, scheme="https", timeout__ms=10_000, connect__timeout__ms=300)

    assert found.startswith("gRPC UNAVAILABLE")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_slow_answer_is_an_answer(kit: Kit, protocol: str) -> None:
    batch = [kit.record("orders", "a")]

    sink = with_forwarder(
        kit, protocol, lambda forwarder, _: forwarder.deliver(batch), kit.answer(delay_s=0.3)
    )

    assert len(sink.bodies) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_destination_that_is_down_at_the_start_is_found_when_it_is_up(kit: Kit, protocol: str) -> None:
    async def run() -> int:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = int(unused.getsockname()[1])
        batch = [kit.record("orders", "a")]
        async with started(forwarder_of(port, protocol)) as forwarder:
            with pytest.raises(Retry):
                await forwarder.deliver(batch)
            async with (kit.grpc if protocol == "grpc" else kit.http)(port=port) as sink:
                await delivered_at_last(forwarder, batch)
                return len(sink.bodies)

    assert asyncio.run(run()) == 1


def test_grpc_abandons_a_connection_without_answers(kit: Kit) -> None:
    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises(Retry):
            await forwarder.deliver([kit.record("orders", "a")])
        before = forwarder.transport
        channel = getattr(before, "channel", None)
        await delivered_at_last(forwarder, [kit.record("orders", "a")])
        assert getattr(forwarder.transport, "channel", None) is not channel

    with_forwarder(kit, "grpc", deliver, kit.answer(delay_s=30), timeout__ms=200)

"""Every sender of ours against HTTP endpoints that redirect, hang, drip, break off, or answer nonsense.

A sender never follows a redirect with what it carries, takes nothing for delivered that was not, ends in its
time limit, and reads no more than its bound.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import pytest
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData

from odradek.cli import cardinality_top
from odradek.cli.errors import CommandFailed
from odradek.delivery.batch_delivery import MAX_ASKED_WAIT_MS, asked_ms
from odradek.endpoints import Credentials
from odradek.endpoints.http_client import HttpClient, HttpTarget
from odradek.meters.metrics_push import exporter
from odradek.meters.metrics_settings import MetricsPushSettings
from odradek.net import jwks_fetch
from odradek.plugin import Retry
from odradek_console.alarms.alarms import Message
from odradek_console.alarms.destinations import destination
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_settings import OtlpProtocol, OtlpSettings
from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.remote_write.receiver import Receiver
from odradek_prometheus.remote_write.sample import Sample
from support.hostile_sinks import HOSTILE, REFUSED, SLOW, TAKING, Sink, plain, sinking
from support.telemetry_records import telemetry_record
from support.waiting import PATIENCE_S

SHORT_S: Final = 0.2
"""The time limit where an endpoint must use it up. Others get `PATIENCE_S`."""
START_S: Final = 3.0
"""What sends an alarm is a program of its own, which has to start."""
Send = Callable[[str, float], bool]
"""Sends something to a URL within seconds; tells whether it counts as delivered."""
SAMPLE: Final = Sample("x", (), Family("x", "x", FamilyType.GAUGE, "", ""), 1, bytes(8))


def otlp_settings(url: str, limit_s: float) -> OtlpSettings:
    limit_ms = int(limit_s * 1000)
    return OtlpSettings(protocol=OtlpProtocol.HTTP, target=url, secure=False, timeout_ms=limit_ms)


def is_bounded(error: Retry) -> bool:
    """Whether the wait that an endpoint asked for makes sense."""
    return 0 <= asked_ms(error.after_s) <= MAX_ASKED_WAIT_MS


def otlp(url: str, limit_s: float) -> bool:
    async def deliver() -> bool:
        forwarder = OtlpForwarder(otlp_settings(url, limit_s), "test")
        await forwarder.start()
        try:
            await forwarder.deliver([telemetry_record(b"\x0a\x00")])
        except Retry as error:
            return not is_bounded(error)
        finally:
            await forwarder.close()
        return not forwarder.refused_points

    return asyncio.run(deliver())


def remote_write(url: str, limit_s: float) -> bool:
    async def write() -> bool:
        client = HttpClient(HttpTarget(url=url, secure=False, timeout_ms=int(limit_s * 1000)), {})
        await client.open()
        receiver = Receiver(client, Credentials({}, {}), "auto")
        try:
            await receiver.write([SAMPLE])
        except Retry as error:
            return not is_bounded(error)
        finally:
            await client.close()
        return not receiver.counts.rejected

    return asyncio.run(write())


def metrics_push(url: str, limit_s: float) -> bool:
    pushing = exporter(MetricsPushSettings(endpoint=f"{url}/v1/metrics", interval_ms=int(limit_s * 1000)))
    try:
        return pushing.export(MetricsData([])) is MetricExportResult.SUCCESS
    finally:
        pushing.shutdown()


def alarm(url: str, limit_s: float) -> bool:
    sent_to = destination("", "ops", url.replace("http", "json", 1) + "/hook", max(limit_s, START_S))
    return not sent_to.send(Message("behind", "Look at it."))


def jwks(url: str, limit_s: float) -> bool:
    jwks_fetch.TIMEOUT_S = limit_s  # type: ignore[misc]
    with suppress(OSError, ValueError):
        jwks_fetch.jwks_fetcher(f"{url}/keys")()
        return True
    return False


def cardinality(url: str, limit_s: float) -> bool:
    cardinality_top.TIMEOUT_S = limit_s  # type: ignore[misc]
    with suppress(CommandFailed):
        cardinality_top.asked(url, "app", 1, None, None)
        return True
    return False


CARRYING: Final[list[Send]] = [otlp, remote_write, metrics_push, alarm]
"""They carry something that is lost if a wrong answer counts as a right one."""
ASKING: Final[list[Send]] = [jwks, cardinality]
EXEMPT: Final = {
    ("alarm", "a web page"),  # a webhook may answer what it likes
    ("jwks", "a web page"),  # whoever reads the keys finds none in it
    *(("jwks", f"{status}") for status in (301, 302, 303, 307, 308)),  # GET may follow, on the same host
}


@pytest.fixture(autouse=True)
def limits() -> Iterator[None]:
    before = jwks_fetch.TIMEOUT_S, cardinality_top.TIMEOUT_S
    yield
    jwks_fetch.TIMEOUT_S, cardinality_top.TIMEOUT_S = before  # type: ignore[misc]


def limit_s(send: Send) -> float:
    """The exporter of OpenTelemetry sends again until its time limit."""
    return SHORT_S if send is metrics_push else PATIENCE_S


@pytest.mark.parametrize("send", CARRYING + ASKING, ids=lambda send: send.__name__)
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_counts_as_delivered_that_was_not(name: str, send: Send) -> None:
    with sinking(HOSTILE[name]) as sink:
        is_delivered = send(sink.url, limit_s(send))

    assert is_delivered is ((send.__name__, name) in EXEMPT)
    if send in CARRYING:
        assert {request.split()[0] for request in sink.requests} == {"POST"}
        assert len({request.split()[1] for request in sink.requests}) == 1


@pytest.mark.parametrize("send", CARRYING + ASKING, ids=lambda send: send.__name__)
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_answer_ends_at_the_time_limit(name: str, send: Send) -> None:
    with sinking(SLOW[name]) as sink:
        assert not send(sink.url, SHORT_S)


@pytest.mark.parametrize("send", CARRYING, ids=lambda send: send.__name__)
@pytest.mark.parametrize("name", TAKING)
def test_odd_answers_that_accept(name: str, send: Send) -> None:
    with sinking(TAKING[name]) as sink:
        assert send(sink.url, PATIENCE_S)


@pytest.mark.parametrize("send", CARRYING + ASKING, ids=lambda send: send.__name__)
def test_a_body_without_end_is_not_kept(send: Send) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with sinking(TAKING["an endless body"]) as sink:
        send(sink.url, PATIENCE_S)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 64 << 10


@pytest.mark.parametrize(
    ("send", "answer"),
    [
        (otlp, plain(200, REFUSED, Content_Type="application/x-protobuf")),
        (metrics_push, plain(200, REFUSED, Content_Type="application/x-protobuf")),
        (remote_write, plain(200, X_Prometheus_Remote_Write_Samples_Written="0")),
    ],
    ids=["otlp", "metrics push", "remote write"],
)
def test_success_with_an_error_in_it(send: Send, answer: Callable[[Sink, object], None]) -> None:
    with sinking(answer) as sink:
        assert not send(sink.url, PATIENCE_S)

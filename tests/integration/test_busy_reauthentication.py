"""Load and re-authentication together: the handshake of a busy producer stands behind what it has sent."""

from __future__ import annotations

import logging
import struct
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from contrib.capture.ports import free_port

from odradek.broker.dispatch.authentication_gate import AuthenticationGate
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.client.users import new_credential
from odradek.net.channel import Channel
from odradek.security.scram import ScramMechanism
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.certificates import Files
from support.hosts import ServeProcess, about_itself, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

kafka = pytest.importorskip("confluent_kafka")

USER, PASSWORD = "alice", "secret"
LIFETIME_MS: Final = 2_000
"""librdkafka authenticates again after nine tenths of it."""
SESSIONS: Final = 3
TIMEOUT_S: Final = 60
RENEWED: Final = "successful_reauthentication"
VALUE: Final = bytes(1_000)
SLOW: Final = """
from odradek.cli.main import main
from odradek.waiting.clock import SystemClock

monotonic_ms = SystemClock.monotonic_ms
SystemClock.monotonic_ms = lambda clock: monotonic_ms(clock) * 3 // 4
main()
"""
SMALL_LOG: Final = {"segment.bytes": "16777216", "retention.bytes": "33554432"}


def is_guarded(channel: Channel) -> bool:
    """Whether the client has to authenticate now."""
    return isinstance(getattr(channel.answer, "__self__", None), AuthenticationGate)


def add_user(bootstrap: str) -> None:
    with AdminClient(bootstrap) as admin:
        credential = new_credential(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD, 4096, b"salt")
        assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}


class SlowServe(ServeProcess):
    """``odradek serve`` with a slow clock: sessions last 0.7 s longer than their clients know. So much time
    their handshakes may need on a busy machine.
    """

    program = ("-c", SLOW)


class Busy:
    """A host whose sessions are short."""

    def __init__(self, folder: Path) -> None:
        self.ca, metrics = Files(folder).ca, f"http://127.0.0.1:{free_port()}"
        settings = [
            "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
            f"metrics.listener={metrics}",
            f"data.dir={folder / 'data'}",
            "sasl.enabled.mechanisms=SCRAM-SHA-256",
            f"connections.max.reauth.ms={LIFETIME_MS}",
            "log.retention.check.interval.ms=300",
            *Files(folder).settings,
        ]
        self.serve = SlowServe(*(part for each in settings for part in ("--set", each)))
        listeners = self.serve.ready.split("listeners=")[1].split(" ")[0].split(",")
        self.addresses = dict(each.split("://") for each in listeners)
        self.metrics = f"{metrics}/metrics"
        add_user(self.addresses["PLAINTEXT"])
        with AdminClient(self.addresses["PLAINTEXT"]) as admin:
            topic = NewTopic(name="t", partitions=1, replication_factor=1, configs=SMALL_LOG)
            admin.create_topics([topic])

    def renewed(self, listener: str) -> float:
        """How often a client of a listener has authenticated again."""
        with urllib.request.urlopen(self.metrics, timeout=TIMEOUT_S) as page:
            lines = page.read().decode().splitlines()
        found = [line for line in lines if RENEWED in line and f'"{listener}"' in line]
        return sum(float(line.rpartition(" ")[2]) for line in found)

    def producer(self, listener: str, errors: list[str], **more: Any) -> Any:
        """A client whose errors are collected, without retries."""
        return kafka.Producer(
            {
                "bootstrap.servers": self.addresses[listener],
                "security.protocol": listener,
                "ssl.ca.location": self.ca,
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "linger.ms": 5,
                "retries": 0,
                "error_cb": lambda error: errors.append(str(error)),
                "on_delivery": lambda error, _: errors.append(str(error)),
                "delivery.report.only.error": True,
            }
            | more
        )


@pytest.fixture(scope="module")
def busy() -> Iterator[Busy]:
    with tempfile.TemporaryDirectory() as folder:
        found = Busy(Path(folder))
        try:
            yield found
        finally:
            found.serve.terminate()


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_busy_producer_keeps_its_session(busy: Busy, listener: str) -> None:
    errors: list[str] = []
    producer = busy.producer(listener, errors)
    deadline_s = time.monotonic() + TIMEOUT_S
    produced = 0

    while busy.renewed(listener) < SESSIONS:
        assert time.monotonic() < deadline_s
        assert not errors
        for _ in range(20_000):
            try:
                producer.produce("t", VALUE)
            except BufferError:
                producer.poll(0.01)
            else:
                produced += 1
    left = producer.flush(TIMEOUT_S)

    assert errors == []
    assert left == 0
    assert produced > SESSIONS * 10_000
    assert not [line for line in about_itself(busy.serve.errors) if "closing" in line or "session" in line]


def test_a_large_request_after_the_session_is_refused_for_that_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "connections.max.reauth.ms=1",
    )
    with running_host(tmp_path / "data", *settings) as host:
        add_user(host.bootstrap)
        listener = host.host.listeners[1]
        with WireClient(("127.0.0.1", listener.bound_port)) as client:
            client.send(SaslHandshakeRequest(mechanism="PLAIN"))
            client.send(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"))
            (channel,) = listener.channels
            wait_until(lambda: is_guarded(channel), "the session lasts")

            client.send_bytes(struct.pack(">i", 600_000) + bytes(600_000))

            assert client.closed_by_peer()
    assert [line.message for line in caplog.records if "session expired" in line.message]
    assert not [line.message for line in caplog.records if "a frame of" in line.message]
    assert listener.counts.expired == 1

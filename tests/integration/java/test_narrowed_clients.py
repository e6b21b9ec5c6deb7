"""Real clients on a host whose ``telemetry.max.bytes`` is too small for what Java's clients send."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from integration.java.jvm import Jvm
from odradek.telemetry.narrowed_clients import OF_CLIENTS, OF_NODES
from odradek.testing import RunningHost
from odradek.wire.error_code import ErrorCode

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
PATIENCE_S = 60
MAX_BYTES = 1_000
"""A Java producer pushes 2 300 bytes, or 500 with the standard metrics; librdkafka at most 500."""


def test_java_client_is_narrowed_until_it_fits_and_librdkafka_is_not(
    jvm: Jvm, odradek_hosts: Callable[..., RunningHost]
) -> None:
    host = odradek_hosts(telemetry_max_bytes=MAX_BYTES)
    host.subscribe("*", interval_ms=200)
    host.topics.create("narrowed")
    command = jvm.command("odradek.TelemetryClient", host.bootstrap, "narrowed", "java", "producer")

    producer = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap, "client.id": "librdkafka"})
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        try:
            pushed = host.telemetry.wait_for_push(client_id="java", timeout_s=PATIENCE_S)
            host.telemetry.wait_for_push(client_id="librdkafka", timeout_s=PATIENCE_S)
            process.communicate("\n", timeout=PATIENCE_S)
        finally:
            process.kill()
    producer.flush()

    refused = [push.error for push in host.telemetry.pushes if push.client_id == "java"][:2]
    assert refused == [ErrorCode.TELEMETRY_TOO_LARGE] * 2
    assert pushed.metrics
    assert all(name.startswith(OF_CLIENTS + OF_NODES) for name in pushed.metrics)
    theirs = {push.error for push in host.telemetry.pushes if push.client_id == "librdkafka"}
    assert theirs == {ErrorCode.NONE}

"""A real collector sends to a host's source, and repeats requests while the host's log has no room.

The collector decides when it repeats a request and with which bytes, so only a real one shows that nothing is
lost or stored twice.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from contrib.capture.ports import free_ports

import odradek_otlp
from odradek.hosting.plugin_manager import HostPluginManager
from support.accounts import assert_accounts_balance
from support.child_process import child_process
from support.hosts import running_host
from support.otlp_source import body_of, entry, fail_now_and_then, source_of
from support.spooling import FAST, FarSide, Plugin
from support.telemetry_records import resource_labels
from support.waiting import wait_until

if TYPE_CHECKING:
    from integration.collector.conftest import WaitUntilItListens

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_100)]
METHOD = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
PATIENCE_S = 60.0
REQUESTS, RESOURCES = 6, 70
CONFIG = """
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{receiver}
exporters:
  {exporter}
    retry_on_failure:
      initial_interval: 50ms
      max_interval: 200ms
    sending_queue:
      num_consumers: 1
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [{name}]
"""
EXPORTERS = {
    "otlp_grpc": "endpoint: 127.0.0.1:{port}\n    tls: {{insecure: true}}\n    compression: gzip",
    "otlp_http": "endpoint: http://127.0.0.1:{port}\n    encoding: json",
}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_collector_that_repeats_requests_loses_and_doubles_nothing(
    tmp_path: Path,
    collector_program: Path,
    listening: WaitUntilItListens,
    exporter: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    monkeypatch.setattr("odradek_otlp.grpc_listener.RETRY_AFTER_S", 0)
    monkeypatch.setattr("odradek_otlp.http_listener.RETRY_AFTER_S", 0)
    receiver, port = free_ports(2)
    config = tmp_path / "collector.yaml"
    section = f"{exporter}:\n    {EXPORTERS[exporter].format(port=port)}"
    config.write_text(CONFIG.format(receiver=receiver, exporter=section, name=exporter))
    far_side, plugins = FarSide(), HostPluginManager()
    plugins.add("otlp", odradek_otlp, "odradek-otlp", "1")
    plugins.add("fake", Plugin({"all": far_side}), "fake", "1")
    protocol = exporter.removeprefix("otlp_")
    address = f"plugins.otlp.source.{protocol}.listener=127.0.0.1:{port}"

    with (
        running_host(tmp_path / "host", *FAST, address, plugins=plugins) as host,
        child_process([collector_program, "--config", config], tmp_path / "collector.log") as process,
        grpc.insecure_channel(f"127.0.0.1:{receiver}") as channel,
    ):
        fail_now_and_then(host)
        listening(process, receiver)
        for request in range(REQUESTS):
            body = body_of(*(entry(host=f"{request}-{each}") for each in range(RESOURCES)))
            channel.unary_unary(METHOD, None, None)(body, timeout=PATIENCE_S)
        wanted = REQUESTS * RESOURCES
        wait_until(lambda: len(far_side.taken) >= wanted, lambda: len(far_side.taken), PATIENCE_S)
        requests = source_of(host).entrance.requests
        wait_until(lambda: requests.get("accepted", 0) == REQUESTS, lambda: requests)
        host.call(lambda: assert_accounts_balance(host.host))

    assert requests["no-room"] > 0
    hosts = Counter(resource_labels(record.payload.data)["host"] for record in far_side.taken)
    assert hosts == Counter(f"{request}-{each}" for request in range(REQUESTS) for each in range(RESOURCES))

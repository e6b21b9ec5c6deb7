"""Readiness, the kill switch and the metrics of `odradek gateway`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contrib.capture.ports import free_port

from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.gateways import GatewayProcess, gateway_of
from support.hosts import running_host
from support.metric_rows import declared
from support.probes import get
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

WITH_FAULTS = {
    "odradek.gateway.dials.failed",
    "odradek.gateway.internal.errors",
    "odradek.gateway.pairs.closed",
    "odradek.gateway.pushes.dropped",
    "odradek.gateway.responses.rewritten",
    "odradek.gateway.server.names.refused",
    "odradek.gateway.telemetry.answers",
    "odradek.gateway.upstream.stuck",
    "odradek.gateway.former.workers",
    "odradek.gateway.worker.restarts",
    "odradek.gateway.workers",
    "odradek.source.lag",
    "odradek.source.rejected",
    "odradek.source.requests",
}
"""Metrics by node, cause, API or error have no rows before there is one; or the setting is the other one, as
for those of workers."""


@contextmanager
def gateway(tmp_path: Path, *settings: str) -> Iterator[tuple[GatewayProcess, int]]:
    """A gateway with metrics, in front of a host that stops first."""
    port = free_port()
    listener = f"metrics.listener=http://127.0.0.1:{port}"
    with (
        running_host(tmp_path / "host", "node.id=1") as host,
        gateway_of(host.bootstrap, tmp_path / "gateway", listener, *settings) as process,
    ):
        yield process, port


def has(port: int, name: str, label: str, value: str) -> bool:
    """Whether a metric has a value."""
    rows = get(port, "/metrics")[1].splitlines()
    return any(row.startswith(name) and label in row and row.endswith(f" {value}") for row in rows)


def offered(process: GatewayProcess) -> set[int]:
    host, _, port = process.bootstrap.rpartition(":")
    with WireClient((host, int(port))) as client:
        return {row.api_key for row in client.send(ApiVersionsRequest(), 0).api_keys}


def wait_for_step(port: int, step: int) -> None:
    """Wait until the kill switch has this position."""
    wait_until(lambda: has(port, "odradek_gateway_switch", "", f"{step}.0"), f"step {step} of the switch")


def test_a_gateway_is_ready_and_counts_what_passes(tmp_path: Path) -> None:
    with gateway(tmp_path) as (process, port):
        offered(process)

        assert get(port, "/healthz") == (200, "ok\n")
        assert get(port, "/readyz") == (200, "ok\n")
        assert has(port, "odradek_gateway_requests_total", 'api="ApiVersions"', "1.0")
        assert has(port, "odradek_gateway_nodes_known", "", "1.0")
        wait_until(
            lambda: not has(port, "odradek_loop_lag_bucket", 'le="+Inf"', "0.0"), "a probe of the loop"
        )


def test_the_kill_switch_takes_telemetry_out_and_back(tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    with gateway(tmp_path, f"gateway.switch={switch}") as (process, port):
        assert offered(process) >= {71, 72}
        for step in (1, 2):
            process.process.send_signal(signal.SIGUSR1)
            wait_for_step(port, step)
        assert not offered(process) & {71, 72}

        switch.write_text("full\n")

        wait_for_step(port, 0)
        assert offered(process) >= {71, 72}


def test_a_cluster_that_is_down_does_not_stop_the_gateway(tmp_path: Path) -> None:
    port = free_port()
    listener = f"metrics.listener=http://127.0.0.1:{port}"
    with gateway_of(f"127.0.0.1:{free_port()}", tmp_path, listener) as process:
        host, _, bootstrap = process.bootstrap.rpartition(":")
        with WireClient((host, int(bootstrap))) as client:
            client.send_bytes(b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff")

            assert client.closed_by_peer()
        assert has(port, "odradek_gateway_pairs_closed_total", 'cause="unreachable"', "1.0")
        assert has(port, "odradek_gateway_dials_failed_total", 'error="refused",node="bootstrap"', "1.0")


def test_a_gateway_exports_all_its_metrics_but_those_of_faults(tmp_path: Path) -> None:
    of_gateways = {name for name in declared() if name.startswith(("odradek.gateway.", "odradek.source."))}

    with gateway(tmp_path) as (process, port):
        offered(process)
        status, text = get(port, "/metrics")

    assert status == 200
    exported = {name for name in of_gateways if f"\n{name.replace('.', '_')}" in text}
    assert of_gateways - exported <= WITH_FAULTS

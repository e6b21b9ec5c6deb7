"""Readiness, the kill switch and the metrics of `odradek gateway`."""

from __future__ import annotations

import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.gateways import GatewayProcess, gateway_of
from support.hosts import running_host
from support.wire_client import WireClient


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


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


def offered(process: GatewayProcess) -> set[int]:
    host, _, port = process.bootstrap.rpartition(":")
    with WireClient((host, int(port))) as client:
        return {row.api_key for row in client.api_versions().api_keys}

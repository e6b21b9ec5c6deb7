"""Two gateways in front of a cluster: one of them writes the lag of its groups."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.testing import RunningHost
from support.gateways import GatewayProcess, gateway_of

pytestmark = pytest.mark.ci

SETTINGS = (
    "gateway.nodes=1",
    "gateway.lag=groups",
    "gateway.lag.interval.ms=1000",
    "lag.export.interval.ms=1000",
    "cluster.name=east",
    "plugins.stdout.enabled=true",
)
TAKEOVER_S = 30


def about_a_group(row: dict[str, Any]) -> bool:
    return "odradek.group.lag.time" in row["names"]


def written(gateway: GatewayProcess) -> list[int]:
    """The times of the records about groups that a gateway has written since it was asked last."""
    rows = [json.loads(gateway.lines.get()) for _ in range(gateway.lines.qsize())]
    return [row["context"]["received_ms"] for row in rows if about_a_group(row)]


def test_one_of_two_writes_and_the_other_one_takes_over(
    odradek_hosts: Callable[..., RunningHost], tmp_path: Path
) -> None:
    cluster = odradek_hosts(telemetry_lag="none", **{"group.initial.rebalance.delay.ms": 0})
    cluster.topics.create("orders")
    cluster.groups.commit("billing", "orders", {0: 0})
    cluster.topics.produce("orders", b"v")

    with gateway_of(cluster.bootstrap, tmp_path / "first", *SETTINGS) as first:
        row = first.next_push(about_a_group)
        cluster_id = cluster.host.broker.cluster_id
        assert row["labels"] == {"cluster.name": "east"}
        assert row["context"]["client_software_name"] == "odradek"
        with gateway_of(cluster.bootstrap, tmp_path / "second", *SETTINGS) as second:
            for _ in range(4):
                last_ms = first.next_push(about_a_group)["context"]["received_ms"]
            assert written(second) == []

            killed_s = time.time()
            first.kill()
            taken_over = second.next_push(about_a_group)
            assert taken_over["labels"] == row["labels"]
            assert taken_over["context"]["client_instance_id"] == row["context"]["client_instance_id"]
            begun_ms = taken_over["context"]["received_ms"]
            assert begun_ms <= (killed_s + TAKEOVER_S) * 1_000
            assert max([last_ms, *written(first)]) < begun_ms
            assert second.terminate() == 0
    assert f"odradek.lag.{cluster_id}" in cluster.groups.names()

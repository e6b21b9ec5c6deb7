"""Client metrics on a page for Prometheus: of a host, a gateway and a forwarder beside a topic."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import odradek_prometheus
from support.delta_clients import EPOCH_S, A, B, Scene, d
from support.delta_pushes import push_delta
from support.forwarding import FLEET, ThreadedForward, create_topic, far_sides, fill
from support.gateways import gateway_of
from support.hosts import EVERYTHING, running_host, serving
from support.spooling import FarSide
from support.waiting import wait_until

pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer
from contrib.capture.ports import free_range

pytestmark = pytest.mark.ci

PATIENCE_S = 60.0
Sample = tuple[str, dict[str, str], float]


class Endpoint:
    """The listener of a process, and the settings that it needs."""

    def __init__(self) -> None:
        self.port = free_range(1)

    @property
    def settings(self) -> Sequence[str]:
        return (
            f"plugins.prometheus.listener=http://127.0.0.1:{self.port}",
            "plugins.prometheus.batch.max.age.ms=20",
        )

    def samples(self) -> list[Sample]:
        """The samples of a page; none while nothing listens."""
        headers = {"Accept": "application/openmetrics-text;version=1.0.0"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                page = response.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return []
        return [
            (sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(page)  # type: ignore[no-untyped-call]
            for sample in family.samples
        ]

    def values(self, name: str) -> list[float]:
        return values(self.samples(), name)


def values(samples: Sequence[Sample], name: str) -> list[float]:
    return [value for each, _, value in samples if each == name]


def test_clients_are_on_the_page_until_after_their_goodbye(tmp_path: Path) -> None:
    endpoint = Endpoint()
    with running_host(tmp_path / "data", *EVERYTHING, *endpoint.settings) as host:
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "orders"})
        producer.produce("t", b"v")
        assert producer.flush(PATIENCE_S) == 0
        created = "org_apache_kafka_producer_connection_creation_total"
        wait_until(lambda: len(endpoint.values(created)) == 1, "a page with the producer", PATIENCE_S)
        push_delta(host.bootstrap, 3.0, 0)
        wait_until(lambda: endpoint.values("c_total") == [3.0], "a page with the other client", PATIENCE_S)
        push_delta(host.bootstrap, 4.0, 60, terminating=True)
        wait_until(lambda: endpoint.values("c_total") == [7.0], "the last value", PATIENCE_S)

        found = endpoint.samples()

    assert max(values(found, "odradek_client_terminated")) == 1.0
    assert {"orders"} < {labels["client_id"] for _, labels, _ in found if "client_id" in labels}


@pytest.mark.slow
def test_a_killed_host_shows_the_same_totals_at_once(tmp_path: Path) -> None:
    endpoint = Endpoint()
    settings = [part for each in (*EVERYTHING, *endpoint.settings) for part in ("--set", each)]
    with serving(tmp_path / "data", *settings) as serve:
        push_delta(serve.bootstrap, 3.0, 0)
        wait_until(lambda: endpoint.values("c_total") == [3.0], "the first total", PATIENCE_S)
        push_delta(serve.bootstrap, 4.0, 60)
        serve.kill()

    with serving(tmp_path / "data", *settings) as serve:
        wait_until(lambda: endpoint.values("c_total") != [], "a page after the restart", PATIENCE_S)
        first = endpoint.values("c_total")
        wait_until(lambda: endpoint.values("c_total") == [7.0], "the total of both", PATIENCE_S)
        push_delta(serve.bootstrap, 5.0, 120)
        wait_until(lambda: endpoint.values("c_total") == [12.0], "the total of all", PATIENCE_S)

    assert first in ([3.0], [7.0])
    assert (tmp_path / "data/prometheus.scrape.totals.db").exists()


@pytest.mark.slow
def test_a_gateway_has_a_page(tmp_path: Path) -> None:
    endpoint = Endpoint()
    with (
        serving(tmp_path / "upstream", "--set", "telemetry.durability=memory") as upstream,
        gateway_of(upstream.bootstrap, tmp_path / "edge", *EVERYTHING, *endpoint.settings) as gateway,
    ):
        push_delta(gateway.bootstrap, 3.0, 0)
        wait_until(lambda: endpoint.values("c_total") == [3.0], "a page with the client", PATIENCE_S)


def test_forwarders_beside_a_topic_have_a_page(tmp_path: Path) -> None:
    endpoint = Endpoint()
    plugins = far_sides(unused=FarSide())
    plugins.add("prometheus", odradek_prometheus, "odradek-prometheus", "1")
    now = time.time() - EPOCH_S
    records = [
        Scene().record(d(1.0, number, number + 1), at=now, instance=(A, B)[number % 2])
        for number in range(20)
    ]
    with running_host(tmp_path / "cluster", "group.initial.rebalance.delay.ms=0") as host:
        create_topic(host.bootstrap, 2)
        create_topic(host.bootstrap, 1, f"{FLEET}_dead_letter")
        fill(host.bootstrap, range(20), 2, records)
        for _ in range(2):
            totals = f"plugins.prometheus.totals.file={tmp_path / 'totals.db'}"
            with ThreadedForward(host.bootstrap, plugins, *endpoint.settings, totals):
                wait_until(lambda: endpoint.values("c_total") == [10.0, 10.0], endpoint.samples, PATIENCE_S)

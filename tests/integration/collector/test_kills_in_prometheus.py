"""A host that is killed at random moments under load: Prometheus has the totals of all that it has stored.

With ``ODRADEK_KILLS=20`` there are twenty kills.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from contrib.capture.ports import free_range
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.topic import decode_record
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.delta_clients import EPOCH_S, d, metrics_data
from support.hosts import EVERYTHING, ServeProcess, serving
from support.kafka_export import consumer_of
from support.prometheus_server import PrometheusServer, prometheus_server
from support.sudden_deaths import random_moments
from support.waiting import wait_until
from support.wire_client import WireClient

KILLS = int(os.environ.get("ODRADEK_KILLS", "3"))
CLIENTS = 12
LONGEST_S = 1.5
"""Of a life, from the first accepted push on."""
PATIENCE_S = 60.0
PATHS = ("scrape", "remote-write")
WHOLE_RUN = "1h"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_500)]


class Pusher(threading.Thread):
    """A client that pushes again and again: each push is a delta of its number."""

    def __init__(self, number: int) -> None:
        super().__init__(daemon=True)
        self.instance_id = bytes([number + 1]) * 16
        self.address: tuple[str, int] | None = None
        self.pushed = 0
        self.accepted = 0
        self.uncertain = 0
        """Not answered, because the host was killed, or refused: the host may keep such a push."""
        self.over = threading.Event()
        """It pushes no more."""
        self.idle = threading.Event()
        """It has pushed for the last time, and stays connected: the series of a client that has left end."""
        self.leaves = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            address = self.address
            if address is None:
                time.sleep(0.01)
                continue
            try:
                self.push_to(address)
            except OSError:  # the host is killed
                time.sleep(0.01)

    def push_to(self, address: tuple[str, int]) -> None:
        with WireClient(address, f"client-{self.instance_id[0]}", timeout_s=30) as client:
            client.introduce()
            subscription = client.subscriptions(self.instance_id)
            while subscription.error_code == 0 and not self.over.is_set():
                self.push(client, subscription.subscription_id)
                time.sleep(0.1)
            if self.over.is_set():
                self.idle.set()
                self.leaves.wait(PATIENCE_S)

    def push(self, client: WireClient, subscription_id: int) -> None:
        begin = int(time.time()) - EPOCH_S
        value = self.pushed + 1
        request = PushTelemetryRequest(
            client_instance_id=self.instance_id,
            subscription_id=subscription_id,
            compression_type=0,
            metrics=metrics_data([d(float(value), begin - 1, begin)], {}).SerializeToString(),
        )
        self.uncertain += value
        self.pushed += 1
        if client.send(request).error_code == 0:
            self.uncertain -= value
            self.accepted += value


@contextmanager
def pushing() -> Iterator[list[Pusher]]:
    pushers = [Pusher(number) for number in range(CLIENTS)]
    for each in pushers:
        each.start()
    try:
        yield pushers
    finally:
        for each in pushers:
            each.over.set()
            each.leaves.set()
        for each in pushers:
            each.join(PATIENCE_S)


@contextmanager
def prometheus(program: Path, folder: Path, scraped: int) -> Iterator[PrometheusServer]:
    """A server that scrapes a port, and takes remote write."""
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: scrape\n"
        f"    static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]\n"
    )
    port = free_range(1)
    with prometheus_server(program, config, port, folder, "--web.enable-remote-write-receiver") as server:
        yield server


def stored(serve: ServeProcess) -> Counter[bytes]:
    """The sum of the deltas in the host's log, by client instance."""
    from confluent_kafka import OFFSET_BEGINNING, TopicPartition

    found: Counter[bytes] = Counter()
    with consumer_of(serve.bootstrap) as consumer:
        topic = consumer.list_topics("__client_telemetry", timeout=PATIENCE_S).topics["__client_telemetry"]
        for number in topic.partitions:
            partition = TopicPartition(topic.topic, number)
            _, end = consumer.get_watermark_offsets(partition, timeout=PATIENCE_S)
            consumer.assign([TopicPartition(topic.topic, number, OFFSET_BEGINNING)])
            left = end
            while left:
                message = consumer.poll(PATIENCE_S)
                assert message is not None
                assert message.error() is None
                left = end - message.offset() - 1
                record = decode_record(message.key(), message.value(), message.headers())
                for entry in MetricsData.FromString(record.payload.data).resource_metrics:
                    (point,) = entry.scope_metrics[0].metrics[0].sum.data_points
                    found[record.payload.client_instance_id] += int(point.as_double)
    return found


class Host:
    """A host that one Prometheus scrapes, and that writes to it too. It is started again after each kill."""

    def __init__(self, folder: Path, server: PrometheusServer, scraped: int, pushers: list[Pusher]) -> None:
        self.folder = folder
        self.pushers = pushers
        settings = (
            *EVERYTHING,
            f"plugins.prometheus.listener=http://127.0.0.1:{scraped}",
            f"plugins.prometheus.totals.file={folder / 'scrape.db'}",
            f"plugins.prometheus.remote_write.url={server.url}/api/v1/write",
            f"plugins.prometheus.remote_write.totals.file={folder / 'write.db'}",
            "plugins.prometheus.remote_write.labels.job=remote-write",
            "plugins.prometheus.batch.max.age.ms=20",
        )
        self.options = [part for each in settings for part in ("--set", each)]

    def start(self, stack: ExitStack) -> ServeProcess:
        """Start it, and wait until it has accepted a push of each client."""
        serve = stack.enter_context(serving(self.folder / "data", *self.options))
        host, _, port = serve.bootstrap.rpartition(":")
        before = [each.accepted for each in self.pushers]
        for each in self.pushers:
            each.address = host, int(port)

        def all_pushed() -> bool:
            return all(now.accepted > then for now, then in zip(self.pushers, before, strict=True))

        wait_until(all_pushed, "no accepted push", PATIENCE_S)
        return serve


def totals(server: PrometheusServer, path: str) -> Counter[bytes]:
    """The totals of the clients, by client instance."""
    rows = server.query(f'c_total{{job="{path}"}}')
    return Counter({bytes([int(row["client_id"].partition("-")[2])]) * 16: int(value) for row, value in rows})


def test_prometheus_has_the_totals_of_a_host_that_was_killed(
    prometheus_program: Path, tmp_path: Path
) -> None:
    scraped = free_range(1)
    with ExitStack() as stack:
        server = stack.enter_context(prometheus(prometheus_program, tmp_path, scraped))
        pushers = stack.enter_context(pushing())
        host = Host(tmp_path, server, scraped, pushers)
        serve = host.start(stack)
        for _ in random_moments(KILLS, LONGEST_S, seed=11):
            serve.kill()
            serve = host.start(stack)
        for each in pushers:
            each.over.set()
        for each in pushers:
            assert each.idle.wait(PATIENCE_S)
        log = stored(serve)
        wait_until(
            lambda: all(totals(server, path) == log for path in PATHS),
            lambda: ([totals(server, path) for path in PATHS], log),
            PATIENCE_S,
        )
        resets = server.query(f"resets(c_total[{WHOLE_RUN}])")

    assert [value for _, value in resets] == [0.0] * CLIENTS * len(PATHS)
    for each in pushers:
        assert each.accepted <= log[each.instance_id] <= each.accepted + each.uncertain
    print(f"{KILLS} kills, {sum(each.pushed for each in pushers)} pushes, total {log.total()}")

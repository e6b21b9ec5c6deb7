"""Hosts that export to one topic and forwarders that read it, each of them gone for a while, under load."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

import odradek_kafka
from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.hosting.plugin_manager import HostPluginManager
from support.accounts import assert_accounts_balance, assert_served_accounts_balance
from support.fleet_load import PATIENCE_S, Load
from support.forwarding import FLEET, create_topic, forwarding
from support.hosts import EVERYTHING, ServeProcess, ThreadedHost, running_host, serving
from support.spooling import FarSide, down, name_of
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
TIMEOUTS = 4
"""Failed attempts in an outage; their number has no limit, see ``tests/unit/delivery``."""
EXPORT = (
    *EVERYTHING,
    f"plugins.kafka.topic={FLEET}",
    "plugins.kafka.batch.max.age.ms=20",
    "plugins.kafka.batch.max.records=40",
    "plugins.kafka.deliver.timeout.ms=400",
    "plugins.kafka.retry.backoff.ms=10",
    "plugins.kafka.retry.backoff.max.ms=20",
    "plugins.kafka.client.reconnect.backoff.max.ms=200",
)


class Exporters:
    """Hosts that export to the topic; each is told the address of the cluster and nothing else."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self.folder = folder
        self.settings = (*EXPORT, f"plugins.kafka.bootstrap.servers={cluster}")
        self.metrics = free_range(1)

    @contextlib.contextmanager
    def here(self, name: str, node_id: int) -> Iterator[ThreadedHost]:
        """A host in this process; its accounts balance at the end."""
        plugins = HostPluginManager()
        plugins.add("kafka", odradek_kafka, "odradek-kafka", "1")
        settings = (*self.settings, f"node.id={node_id}")
        with running_host(self.folder / name, *settings, plugins=plugins) as host:
            yield host
            host.call(lambda: assert_accounts_balance(host.host))

    def killable(self, name: str) -> contextlib.AbstractContextManager[ServeProcess]:
        listener = f"metrics.listener=http://127.0.0.1:{self.metrics}"
        options = [part for each in (*self.settings, listener) for part in ("--set", each)]
        return serving(self.folder / name, *options)

    def assert_balanced(self) -> None:
        """The accounts of the host in the other process balance, and nothing waits."""

        def settled() -> bool:
            accounts = assert_served_accounts_balance(f"http://127.0.0.1:{self.metrics}/metrics")
            return accounts["forwarder_queued", "kafka"] == 0

        wait_until(settled, "the export does not end", PATIENCE_S)


def stats_of(host: ThreadedHost) -> ForwarderStats:
    return host.host.forwarders[0].stats()


def retried(stats: Callable[[], ForwarderStats]) -> None:
    """Wait until an outage has taken as many attempts as a long one."""

    def attempts() -> int:
        found = stats()
        return found.retries + found.failures

    goal = attempts() + TIMEOUTS
    wait_until(lambda: attempts() >= goal, stats, PATIENCE_S)


def test_no_accepted_push_is_missing_whatever_was_gone(tmp_path: Path) -> None:
    """A host is killed, the cluster is gone, then the destination; then hosts and forwarders come and go."""
    far_side, other_side = FarSide(), FarSide()
    bootstrap = f"127.0.0.1:{free_range(1)}"
    exporters = Exporters(tmp_path, bootstrap)

    def cluster() -> contextlib.AbstractContextManager[ThreadedHost]:
        listener = f"listeners=PLAINTEXT://{bootstrap}"
        return running_host(tmp_path / "cluster", listener, "group.initial.rebalance.delay.ms=0")

    with ExitStack() as stack, ExitStack() as broker:
        broker.enter_context(cluster())
        create_topic(bootstrap)
        create_topic(bootstrap, 1, f"{FLEET}_dead_letter")
        forwarder = stack.enter_context(forwarding(bootstrap, far_side))
        first = stack.enter_context(ExitStack())
        one = first.enter_context(exporters.here("one", 1))
        with exporters.killable("two") as two:
            load = stack.enter_context(Load(one.bootstrap, two.bootstrap))
            load.some()
            load.at(one.bootstrap)
            two.kill()
        load.some()
        two = stack.enter_context(exporters.killable("two"))
        load.at(one.bootstrap, two.bootstrap)

        broker.close()
        retried(lambda: stats_of(one))
        load.some()
        broker.enter_context(cluster())
        arrived(load, far_side)

        far_side.behavior = down
        retried(forwarder.stats)
        load.some()
        far_side.behavior = lambda batch: None

        three = stack.enter_context(exporters.here("three", 3))
        other = stack.enter_context(forwarding(bootstrap, other_side))
        wait_until(lambda: len(other.owned) == len(forwarder.owned) == 2, "not shared", PATIENCE_S)
        load.move(two.bootstrap, three.bootstrap)
        drained(one)
        first.close()
        forwarder.stop()
        load.some()
        load.stop()
        arrived(load, far_side, other_side)
        for process in (forwarder, other):
            assert process.stats().rejected == {}
        exporters.assert_balanced()

    taken = [record for side in (far_side, other_side) for record in side.taken]
    pushed = Counter(name_of(record.payload.data) for record in taken)
    origins = {record.origin for record in taken}
    print(f"{len(load.accepted)} accepted, {pushed.total() - len(pushed)} repeated, {load.fleet.tally}"[:300])
    assert load.fleet.tally.refused == {}
    assert len(pushed.keys() - load.accepted) <= load.fleet.tally.unanswered
    assert len(origins) == len(pushed), "a repeated record has another origin"


def arrived(load: Load, *sides: FarSide) -> None:
    """Wait until all pushes that were accepted so far have arrived."""
    accepted = set(load.accepted)

    def missing() -> set[str]:
        return accepted - {name for side in sides for name in side.names}

    wait_until(lambda: not missing(), lambda: len(missing()), PATIENCE_S)


def drained(host: ThreadedHost) -> None:
    """Wait until a host has exported all that it stored, as before it is removed."""

    def empty() -> bool:
        stats = stats_of(host)
        return not (stats.queued or stats.in_flight)

    wait_until(empty, lambda: stats_of(host), PATIENCE_S)

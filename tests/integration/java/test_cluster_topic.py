"""Hosts whose telemetry topic is on three Apache Kafka nodes, of which one is restarted.

Only with real replicas does an acknowledgment survive the end of a leader.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from integration.java.kafka_cluster import KafkaCluster
from odradek.wire.error_code import ErrorCode
from support.hosts import EVERYTHING, running_host
from support.kafka_export import read
from support.pushers import Pushers, pushing
from support.spooling import name_of
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(150)]
TOPIC = "telemetry-of-hosts"
TABLE = "plugins.kafka.telemetry"
RESTARTED = 2
THREADS = 2
SOME = 50
PATIENCE_S = 60.0


def await_accepted(pushers: Pushers, pushes: int) -> None:
    wait_until(lambda: len(pushers.names()) >= pushes, lambda: (pushers.refused, pushes), PATIENCE_S)


def test_a_broker_is_restarted_and_nothing_accepted_is_missing(
    kafka_nodes: KafkaCluster, tmp_path: Path
) -> None:
    settings = (
        *EVERYTHING,
        "telemetry.durability=kafka",
        f"telemetry.topic.name={TOPIC}",
        f"{TABLE}.bootstrap.servers={kafka_nodes.bootstrap}",
        f"{TABLE}.topic.partitions=3",
    )
    with (
        running_host(tmp_path / "a", *settings) as one,
        running_host(tmp_path / "b", *settings) as two,
        pushing(THREADS) as first,
        pushing(THREADS) as second,
    ):
        first.bootstrap, second.bootstrap = one.bootstrap, two.bootstrap
        clients = (first, second)
        for each in clients:
            await_accepted(each, SOME)
        kafka_nodes.roll(RESTARTED)
        for each in clients:
            await_accepted(each, len(each.names()) + SOME)
            each.stop()
        accounts = [host.host.telemetry.accounts for host in (one, two)]
        assert all(each.balanced for each in accounts), accounts
        accepted = Counter(first.names()) + Counter(second.names())
        wanted = sum(each.appended + each.empty for each in accounts)
        messages = read(
            kafka_nodes.bootstrap, TOPIC, wanted, lambda each: name_of(each.value() or b"") in accepted
        )
        found = Counter(name_of(each.value() or b"") for each in messages)

    assert wanted == accepted.total()
    assert accepted - found == Counter()
    assert set(first.refused) | set(second.refused) <= {int(ErrorCode.THROTTLING_QUOTA_EXCEEDED)}

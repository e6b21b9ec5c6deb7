"""``odradek cardinality estimate`` with clients of librdkafka: what it says, then what comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from odradek.cli.main import run
from odradek.testing import RunningHost
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 60
INTERVAL_MS = 300
NODES = "org.apache.kafka.producer.node.,org.apache.kafka.consumer.node."


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@pytest.fixture
def clients(host: RunningHost) -> Iterator[None]:
    """A producer and a consumer that push the latency of their nodes."""
    host.subscribe(NODES, interval_ms=INTERVAL_MS)
    host.topics.create("estimated")
    common = {"bootstrap.servers": host.bootstrap, "log_level": 0}
    with ExitStack() as closing:
        producer = confluent_kafka.Producer({**common, "client.id": "producer"})
        closing.callback(producer.flush, 10)
        group = {"client.id": "consumer", "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**common, **group})
        closing.callback(consumer.close)
        producer.produce("estimated", b"value")
        consumer.subscribe(["estimated"])
        wait_until(lambda: consumer.poll(0.1) is not None, "the record", PATIENCE_S)
        wait_until(lambda: pushed_by(host) == 2 + 4, "two metrics of three nodes", PATIENCE_S)
        yield


def streams(host: RunningHost) -> dict[str | None, set[str]]:
    """The streams of each client under its latest subscription, as text."""
    latest: dict[str | None, tuple[int, set[str]]] = {}
    for push in host.telemetry.pushes:
        subscription_id, found = latest.get(push.client_id, (0, set()))
        if push.request.subscription_id != subscription_id:
            found = set()
        found |= {f"{point.metric} {sorted(point.attributes.items())}" for point in push.points}
        latest[push.client_id] = push.request.subscription_id, found
    return {client_id: found for client_id, (_, found) in latest.items() if found}


def pushed_by(host: RunningHost) -> int:
    return sum(map(len, streams(host).values()))


def estimated(host: RunningHost, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    status = run(["cardinality", "estimate", "--bootstrap-server", host.bootstrap, *options, "--json"])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    found: dict[str, Any] = json.loads(printed.out)
    return found


@pytest.mark.usefixtures("clients")
def test_what_is_estimated_comes(host: RunningHost, capsys: pytest.CaptureFixture[str]) -> None:
    more = estimated(host, capsys, "--name", "test", "--metrics", "*")

    host.subscribe("*", interval_ms=INTERVAL_MS)
    wait_until(lambda: pushed_by(host) == 10 + 15, "pushes with all metrics", PATIENCE_S)
    seen = estimated(host, capsys, "--name", "test", "--interval", "1000")

    assert more["bases"]["modelled"]["clients"] == more["changed"] == 2
    pushed = pushed_by(host)
    assert more["after"]["series"] == pytest.approx(pushed, rel=0.1)
    assert seen["bases"]["seen"] == {"clients": 2, "series": pushed}
    assert seen["now"]["series"] == seen["after"]["series"] == pushed
    assert seen["after"]["samples_per_second"] == pushed
    assert more["exceeded"] == []

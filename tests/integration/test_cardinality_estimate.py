"""``odradek cardinality estimate`` with clients of librdkafka: what it says, then what comes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.cli.main import run
from odradek.plugin import TelemetryRecord
from odradek.testing import RunningHost
from odradek.testing.pushes import recorded
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 60
INTERVAL_MS = 300
PREFIX = "org.apache.kafka."
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
    seen: dict[str, Any] = {}

    def is_seen() -> bool:
        """Pushes that were accepted are in the topic a little later."""
        seen.update(estimated(host, capsys, "--name", "test", "--interval", "1000"))
        return bool(seen["bases"].get("seen") == {"clients": 2, "series": 10 + 15})

    wait_until(is_seen, lambda: seen, PATIENCE_S)

    assert more["bases"]["modelled"]["clients"] == more["changed"] == 2
    pushed = pushed_by(host)
    assert more["after"]["series"] == pytest.approx(pushed, rel=0.1)
    assert seen["bases"]["seen"] == {"clients": 2, "series": pushed}
    assert seen["now"]["series"] == seen["after"]["series"] == pushed
    assert seen["after"]["samples_per_second"] == pushed
    assert more["exceeded"] == []


def test_exit_status_tells_of_a_broken_budget(
    odradek_hosts: Callable[..., RunningHost], capsys: pytest.CaptureFixture[str]
) -> None:
    host = odradek_hosts(telemetry_durability="log", subscription_budget_client_series=100)
    host.subscribe(f"{PREFIX}producer.", interval_ms=2_000)
    records = [few_metrics(client) for client in ("java-producer", "java-admin")]
    for record in records:
        host.call(partial(spool_of(host).take_record, record))
    command = ["cardinality", "estimate", "--bootstrap-server", host.bootstrap, "--metrics", "*"]
    wait_until(lambda: spool_of(host).written == len(records), "the records", PATIENCE_S)

    statuses = [run([*command, *more]) for more in ([], ["--exit-code"], ["--max-pushes", "1"])]

    assert statuses == [0, 1, 0]
    printed = capsys.readouterr()
    assert "  subscription.budget.client.series = 100: 104 series" in printed.out
    said = printed.err.splitlines()
    assert said[-2].startswith("note: the newest 1 pushes were read; 1 older ones were not")
    assert said[-1].startswith("note: this is added to test: a client gets the metrics of all subscriptions")


def test_a_preset_is_estimated_from_the_topic_of_the_host_with_its_observed_clients(
    odradek_hosts: Callable[..., RunningHost], capsys: pytest.CaptureFixture[str]
) -> None:
    host = odradek_hosts(telemetry_durability="log", telemetry_topic_name="mine")
    host.subscribe("*", interval_ms=2_000, name="debug")
    record = few_metrics("librdkafka-producer")
    instance = bytes(15) + b"o"
    seen = replace(record, payload=replace(record.payload, client_instance_id=instance), observed=True)
    for each in (record, seen):
        host.call(partial(spool_of(host).take_record, each))
    wait_until(lambda: spool_of(host).written == 2, "the records", PATIENCE_S)

    found = estimated(host, capsys, "--preset", "debug")

    assert (found["clients"], found["changed"], found["added_to"]) == (2, 2, [])
    assert found["after"]["prometheus_series"] == found["after"]["series"] + 2 * 4
    assert found["after"]["pushes_per_second"] == 0.2


def test_without_live_clients_a_note_says_so(host: RunningHost, capsys: pytest.CaptureFixture[str]) -> None:
    statuses = [
        run(["cardinality", "estimate", "--bootstrap-server", host.bootstrap, *options])
        for options in (["--metrics", "*"], ["--interval", "5"], ["--metrics", "*", "--topic", "none"], [])
    ]

    assert statuses == [0, 1, 1, 2]
    failing = "Error while executing cardinality command : "
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if "cardinality" in line or "note" in line] == [
        "note: no client has pushed to __client_telemetry in the last 90 s",
        failing + "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        failing + "there is no topic none: name the telemetry topic with --topic",
        "odradek cardinality estimate: one of --preset, --metrics, --interval and --match must be specified",
    ]


def test_records_that_cannot_be_read_are_a_note(
    host: RunningHost, capsys: pytest.CaptureFixture[str]
) -> None:
    record = few_metrics("java-producer")
    junk = replace(record, payload=replace(record.payload, data=b"\xff\xff"))
    for each in (record, junk, junk):
        host.call(partial(spool_of(host).take_record, each))
    wait_until(lambda: spool_of(host).written == 3, "the records", PATIENCE_S)

    status = run(["cardinality", "estimate", "--bootstrap-server", host.bootstrap, "--metrics", "*"])

    assert status == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("live clients: 1;")
    assert printed.err.startswith("note: 2 records of __client_telemetry were left out; the last one: ")


def few_metrics(client: str) -> TelemetryRecord:
    """A push of a recorded client, as if it came now: the metrics of its nodes and topics."""
    record = recorded(client)[0].record
    data = MetricsData.FromString(record.payload.data)
    for entry in data.resource_metrics:
        for scope in entry.scope_metrics:
            some = [each for each in scope.metrics if ".node." in each.name or ".topic." in each.name]
            del scope.metrics[:]
            scope.metrics.extend(some)
    return replace(
        record,
        context=replace(record.context, received_ms=int(time.time() * 1_000)),
        payload=replace(record.payload, data=data.SerializeToString()),
    )


def spool_of(host: RunningHost) -> TelemetrySpool:
    assert host.host.spool is not None
    return host.host.spool

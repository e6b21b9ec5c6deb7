"""A subscription for Java clients: estimated, then applied; and the refusals that Kafka's tools show."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from odradek.cli.main import run
from odradek.testing import RunningHost
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
PATIENCE_S = 60
INTERVAL_MS = 300
KINDS = ("producer", "consumer")
SOME = (
    "org.apache.kafka.producer.node.,org.apache.kafka.producer.topic.,"
    "org.apache.kafka.consumer.node.,org.apache.kafka.consumer.fetch.manager."
)
"""Metrics that show the nodes, topics and partitions of a client."""
WORKING = {
    ("producer", "org.apache.kafka.producer.topic.record.send.total"),
    ("consumer", "org.apache.kafka.consumer.fetch.manager.records.lag"),
}
"""Each client has this once it has sent or read a record. (The consumer has another metric of a partition as
soon as it is assigned.) An earlier estimate would count too little.
"""


@contextmanager
def living(jvm: Jvm, host: RunningHost) -> Iterator[None]:
    """A producer and a consumer of one topic."""
    with ExitStack() as closing:
        for kind in KINDS:
            command = jvm.command("odradek.TelemetryClient", host.bootstrap, "estimated", kind, kind)
            process = closing.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, text=True))
            closing.callback(process.kill)
        yield


def streams(host: RunningHost) -> dict[str | None, int]:
    """The streams in the latest push of each client, without gauges that are no number."""
    return {
        push.client_id: len(
            {
                (point.metric, str(sorted(point.attributes.items())))
                for point in push.points
                if not math.isnan(point.value)
            }
        )
        for push in host.telemetry.pushes
        if push.metrics
    }


def shown(host: RunningHost) -> set[tuple[str | None, str]]:
    """The client ids and the metrics that they have pushed."""
    return {(push.client_id, point.metric) for push in host.telemetry.pushes for point in push.points}


def with_other_metrics(host: RunningHost) -> set[str | None]:
    """The clients that have pushed more than SOME: they learn of a subscription one after the other."""
    some = tuple(SOME.split(","))
    return {
        push.client_id
        for push in host.telemetry.pushes
        if not all(point.metric.startswith(some) for point in push.points)
    }


def test_java_clients_bring_what_was_estimated(
    jvm: Jvm, odradek_hosts: Callable[..., RunningHost], capsys: pytest.CaptureFixture[str]
) -> None:
    host = odradek_hosts(
        telemetry_durability="log", subscription_estimate="refuse", subscription_budget_client_series=110
    )
    tools = ConsoleTools(jvm, host.bootstrap)
    host.subscribe(SOME, interval_ms=INTERVAL_MS)
    host.topics.create("estimated")
    with living(jvm, host):
        wait_until(lambda: shown(host) >= WORKING, "pushes of working clients", PATIENCE_S)
        everything = ("--name", "test", "--metrics", "*")
        status = run(["cardinality", "estimate", "--bootstrap-server", host.bootstrap, *everything, "--json"])
        estimated = json.loads(capsys.readouterr().out)
        refused = tools.run("kafka-client-metrics", "--alter", *everything)
        refused_too = tools.run(
            "kafka-configs", "--client-metrics", "test", "--alter", "--add-config", "metrics=[*]"
        )

        host.subscribe("*", interval_ms=INTERVAL_MS)
        wait_until(lambda: with_other_metrics(host) == set(KINDS), "pushes with all metrics", PATIENCE_S)
        brought = sum(streams(host).values())

    assert (status, estimated["bases"]["modelled"]["clients"]) == (0, 2)
    assert estimated["after"]["series"] == pytest.approx(brought, rel=0.1)
    assert [each["budget"] for each in estimated["exceeded"]] == ["subscription.budget.client.series"]
    for tool in (refused, refused_too):
        assert tool.status == 1
        assert "subscription test would bring too many series: 128 series of client instance" in tool.said
        assert "2 of 2 live clients change; series" in tool.said

"""A Java producer whose metrics arrive with the labels of KIP-714."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from integration.java.host_process import HostProcess, Push
from integration.java.jvm import Clients, Jvm
from odradek.plugin import CLUSTER_NAME

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]


@dataclass(frozen=True, slots=True)
class Finished:
    """A producer that has ended."""

    version: str
    client_id: str
    printed: dict[str, str]
    """Its output, by name."""

    def pushed(self, push: Push) -> bool:
        return bool(push["context"]["client_id"] == self.client_id)

    def pushed_last(self, push: Push) -> bool:
        return self.pushed(push) and bool(push["context"]["terminating"])


@pytest.fixture(scope="module")
def finished(jvm: Jvm, clients: Clients, host: HostProcess) -> Finished:
    """A producer that ran for three seconds under a subscription with an interval of half a second."""
    client_id = f"java-producer-{clients.version}"
    wanted = f"interval.ms=500,metrics=[org.apache.kafka.producer.],match=[client_id={client_id}]"
    subscription = ("--client-metrics", client_id, "--alter", "--add-config", wanted)
    subscribed = jvm.run("kafka.admin.ConfigCommand", "--bootstrap-server", host.bootstrap, *subscription)
    assert subscribed.status == 0, subscribed.said
    done = clients.jvm.run("odradek.TelemetryProducer", host.bootstrap, "java-telemetry", "3", client_id)
    assert done.status == 0, done.said
    printed = dict(line.split("=", 1) for line in done.out.splitlines())
    return Finished(clients.version, client_id, printed)


def test_records_are_acknowledged(finished: Finished) -> None:
    assert int(finished.printed["acknowledged"]) > 0


def test_the_push_has_the_id_that_the_producer_got(host: HostProcess, finished: Finished) -> None:
    push = host.wait_for_push(finished.pushed)

    assert push["context"]["client_instance_id"] == finished.printed["client.instance.id"]


def test_the_push_has_its_nine_labels(host: HostProcess, finished: Finished) -> None:
    push = host.wait_for_push(finished.pushed)

    context, labels = push["context"], dict(push["labels"])
    assert labels.pop("client_source_port").isdigit()
    assert labels.pop(CLUSTER_NAME)
    assert labels == {
        "client_id": finished.client_id,
        "client_instance_id": context["client_instance_id"],
        "client_software_name": "apache-kafka-java",
        "client_software_version": finished.version,
        "client_source_address": "127.0.0.1",
        "principal": "User:ANONYMOUS",
        "broker_node_id": str(context["broker_id"]),
    }


def test_only_subscribed_metrics_are_pushed(host: HostProcess, finished: Finished) -> None:
    push = host.wait_for_push(finished.pushed)

    assert push["metrics"] > 20
    assert "org.apache.kafka.producer.record.send.total" in push["names"]
    assert all(name.startswith("org.apache.kafka.producer.") for name in push["names"])


def test_closing_the_producer_sends_a_last_push(host: HostProcess, finished: Finished) -> None:
    push = host.wait_for_push(finished.pushed_last)

    assert push["metrics"] > 0

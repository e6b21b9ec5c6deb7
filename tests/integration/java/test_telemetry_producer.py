"""A Java producer whose metrics arrive with the labels of KIP-714."""

from __future__ import annotations

import pytest

from integration.java.host_process import HostProcess, Push
from integration.java.jvm import Jvm
from integration.java.main_server import Finished

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
CLIENT_ID = "java-producer"
KAFKA = "4.3.1"


@pytest.fixture(scope="module")
def finished(jvm: Jvm, host: HostProcess) -> Finished:
    """A producer that ran for three seconds under a subscription with an interval of half a second."""
    wanted = "interval.ms=500,metrics=[org.apache.kafka.producer.],match=[client_id=java-producer]"
    subscription = ("--client-metrics", "java-producer", "--alter", "--add-config", wanted)
    subscribed = jvm.run("kafka.admin.ConfigCommand", "--bootstrap-server", host.bootstrap, *subscription)
    assert subscribed.status == 0, subscribed.said
    done = jvm.run("odradek.TelemetryProducer", host.bootstrap, "java-telemetry", "3", CLIENT_ID)
    assert done.status == 0, done.said
    return done


@pytest.fixture
def printed(finished: Finished) -> dict[str, str]:
    """The output of the producer, by name."""
    return dict(line.split("=", 1) for line in finished.out.splitlines())


def of_producer(push: Push) -> bool:
    return bool(push["context"]["client_id"] == CLIENT_ID)


def last_of_producer(push: Push) -> bool:
    return of_producer(push) and bool(push["context"]["terminating"])


def test_records_are_acknowledged(printed: dict[str, str]) -> None:
    assert int(printed["acknowledged"]) > 0


def test_the_push_has_the_id_that_the_producer_got(host: HostProcess, printed: dict[str, str]) -> None:
    push = host.wait_for_push(of_producer)

    assert push["context"]["client_instance_id"] == printed["client.instance.id"]


@pytest.mark.usefixtures("finished")
def test_the_push_has_its_eight_labels(host: HostProcess) -> None:
    push = host.wait_for_push(of_producer)

    context, labels = push["context"], push["labels"]
    assert labels.pop("client_source_port").isdigit()
    assert labels == {
        "client_id": CLIENT_ID,
        "client_instance_id": context["client_instance_id"],
        "client_software_name": "apache-kafka-java",
        "client_software_version": KAFKA,
        "client_source_address": "127.0.0.1",
        "principal": "User:ANONYMOUS",
        "node_id": str(context["node_id"]),
    }


@pytest.mark.usefixtures("finished")
def test_only_subscribed_metrics_are_pushed(host: HostProcess) -> None:
    push = host.wait_for_push(of_producer)

    assert push["metrics"] > 20
    assert "org.apache.kafka.producer.record.send.total" in push["names"]
    assert all(name.startswith("org.apache.kafka.producer.") for name in push["names"])


@pytest.mark.usefixtures("finished")
def test_closing_the_producer_sends_a_last_push(host: HostProcess) -> None:
    push = host.wait_for_push(last_of_producer)

    assert push["metrics"] > 0

"""``odradek subscriptions`` and leases of ``odradek watch`` at Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from integration.java.kafka_cluster import KafkaCluster
from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.subscriptions import delete_subscription
from odradek_console.reading.leases import clear, exactly, grant, new_name
from odradek_console.terminal.subscriptions import CHANGED, subscriptions
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
NAME = "console-test"
PATIENCE_S = 60
WANTED = f'[subscriptions.{NAME}]\nmetrics = ["org.apache.kafka.none."]\n"interval.ms" = 5000\n'


@pytest.fixture
def admin(kafka_nodes: KafkaCluster) -> Iterator[AdminClient]:
    with AdminClient(kafka_nodes.bootstrap) as found:
        yield found
        for name in read_subscriptions(found):
            if name == NAME or name.startswith("odradek-watch-"):
                delete_subscription(found, name)


def test_a_file_is_applied_and_drift_is_mended(
    kafka_nodes: KafkaCluster, admin: AdminClient, tmp_path: Path
) -> None:
    path = tmp_path / "wanted.toml"
    path.write_text(WANTED)
    options = ["--bootstrap-server", kafka_nodes.bootstrap, "--file", str(path)]

    def run(*arguments: str) -> int:
        return CliRunner().invoke(subscriptions, [*arguments[:1], *options, *arguments[1:]]).exit_code

    def step() -> str:
        """The plan for this subscription; Kafka shows a change a moment after it has accepted it."""
        lines = CliRunner().invoke(subscriptions, ["plan", *options, "--json"]).output.splitlines()
        return next((line.split('"')[3] for line in lines if NAME in line), "")

    planned, applied = run("plan", "--check"), run("apply")
    wait_until(lambda: step() == "", "the subscription", PATIENCE_S)
    path.write_text(WANTED.replace("5000", "6000"))
    drift = step()
    mended = run("apply")
    wait_until(lambda: step() == "", "the change", PATIENCE_S)

    assert (planned, applied, drift, mended) == (CHANGED, 0, "change", 0)
    assert read_subscriptions(admin)[NAME] == {
        "metrics": "org.apache.kafka.none.",
        "interval.ms": "6000",
    }


def test_a_lease_that_has_ended_is_cleared(admin: AdminClient) -> None:
    match = exactly("client_id", ["a.b,c", "d"])
    name = new_name(int(time.time()) - 5)
    grant(admin, "org.apache.kafka.none.", 5_000, match, name)
    wait_until(lambda: name in read_subscriptions(admin), "the lease", PATIENCE_S)

    cleared = clear(admin, time.time())

    assert cleared == [name]
    wait_until(lambda: name not in read_subscriptions(admin), "its end", PATIENCE_S)

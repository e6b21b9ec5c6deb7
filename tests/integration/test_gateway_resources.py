"""CLIENT_METRICS resources of a gateway's own, for a cluster that has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.main import run
from support.gateways import gateway_of
from support.hosts import running_host

pytestmark = pytest.mark.ci


def test_subscriptions_are_set_at_the_gateway_and_reach_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    own = "gateway.client.metrics=own", "gateway.subscriptions=file", "plugins.stdout.enabled=true"
    with (
        running_host(tmp_path / "upstream") as host,
        gateway_of(host.bootstrap, tmp_path / "gateway", *own) as gateway,
    ):
        command = ["client-metrics", "--bootstrap-server", gateway.bootstrap]
        alter = [*command, "--alter", "--name", "all", "--metrics", "*", "--interval", "200"]
        statuses = [run(alter), run([*command, "--list"]), run([*command, "--describe", "--name", "all"])]
        producer = confluent_kafka.Producer({"bootstrap.servers": gateway.bootstrap, "client.id": "pusher"})
        producer.produce("pushed", b"x")
        producer.flush(20)
        gateway.next_push(lambda row: row["context"]["client_id"] == "pusher")
        producer.flush(1)
        upstream = host.call(lambda: host.host.pushes.file_subscriptions.stored())

    shown = capsys.readouterr().out
    assert statuses == [0, 0, 0]
    assert "interval.ms=200" in shown
    assert upstream == {}

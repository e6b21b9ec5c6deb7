"""``odradek topology`` asks a host, a gateway, and a gateway with workers who uses which topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from contrib.capture.ports import free_port

from odradek.cli.errors import CommandFailed
from odradek.cli.topology import topology
from odradek.testing import RunningHost
from support.gateway_workers import workers_of
from support.waiting import wait_until

pytestmark = pytest.mark.ci
Used = set[tuple[str, str, str, str]]
WRITES = ("writer", "orders", "write", "User:ANONYMOUS")


def asked(*arguments: str) -> list[str]:
    done = CliRunner().invoke(topology, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def used(*arguments: str) -> Used:
    """Client id, topic, direction and principal of each use."""
    found: list[dict[str, Any]] = [json.loads(line) for line in asked(*arguments, "--json")]
    return {(row["client_id"], row["topic"], row["direction"], row["principal"]) for row in found}


def write_once(bootstrap: str) -> None:
    """Write with a client that names topics by their ids, if the cluster does."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "client.id": "writer"})
    producer.produce("orders", b"v")
    assert producer.flush(30) == 0
    del producer


@pytest.fixture
def cluster(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    port = free_port()
    host = odradek_hosts(telemetry_lag="none", **{"metrics.listener": f"http://127.0.0.1:{port}"})
    host.topics.create("orders")
    return host


def url_of(host: RunningHost) -> str:
    endpoint = host.host.outlets.endpoint
    assert endpoint is not None
    return f"http://127.0.0.1:{endpoint.bound_port}"


def test_a_host_tells_it_as_a_table_and_as_objects(cluster: RunningHost) -> None:
    write_once(cluster.bootstrap)
    url = url_of(cluster)
    wait_until(lambda: WRITES in used(url), lambda: used(url))

    heading, *lines = asked(url, "--topic", "orders", "--client-id", "writer")
    assert heading.split() == ["TOPIC", "USE", "CLIENT", "ADDRESS", "LIBRARY", "LAST", "SINCE"]
    (line,) = lines
    assert line.split()[:4] == ["orders", "write", "writer", "127.0.0.1"]
    assert max(map(len, (heading, line))) <= 80
    assert asked(url, "--topic", "none") == ["no client uses a topic"]


def test_all_workers_of_a_gateway_tell_it_and_two_programs_together(
    cluster: RunningHost, tmp_path: Path
) -> None:
    with workers_of(cluster.bootstrap, tmp_path / "data", "gateway.observe=none", workers=2) as gateway:
        write_once(gateway.process.bootstrap)
        url = f"http://127.0.0.1:{gateway.metrics_port}"
        wait_until(lambda: WRITES in used(url), lambda: used(url))
        assert used(url, url_of(cluster), "--client-id", "writer") == {WRITES}
        with pytest.raises(CommandFailed, match="refused"):
            asked(url, f"http://127.0.0.1:{free_port()}")


def test_it_is_not_known(odradek_hosts: Callable[..., RunningHost]) -> None:
    listener = f"http://127.0.0.1:{free_port()}"
    odradek_hosts(**{"metrics.listener": listener, "topology.uses.max": 0})

    with pytest.raises(CommandFailed, match="it has no topology"):
        asked(listener)
    with pytest.raises(CommandFailed, match="is no http:// or https:// URL"):
        asked("127.0.0.1:9464")

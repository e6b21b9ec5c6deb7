"""``odradek client-metrics`` and the admin client over the network, against a host."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import odradek
from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from support.hosts import ThreadedHost, running_host, serving

pytestmark = pytest.mark.ci


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path / "data", "telemetry.durability=memory") as started:
        yield started


@pytest.fixture
def admin(host: ThreadedHost) -> Iterator[AdminClient]:
    with AdminClient(host.bootstrap, timeout_s=10) as client:
        yield client


def tool(bootstrap: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek", "client-metrics", "--bootstrap-server", bootstrap, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


def output(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_subscription_is_created_changed_and_deleted(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        at = server.bootstrap
        altered = tool(
            at,
            "--alter",
            "--name",
            "slow",
            "--metrics",
            "a,b",
            "--interval",
            "1000",
            "--match",
            "client_id=x.*",
        )
        described = tool(at, "--describe", "--name", "slow")
        changed = tool(at, "--alter", "--name", "slow", "--interval", "", "--metrics", "*")
        after = tool(at, "--describe")
        listed = tool(at, "--list")
        deleted = tool(at, "--delete", "--name", "slow")
        empty = tool(at, "--list")

    assert output(altered) == output(changed) == ["Altered client metrics config for slow."]
    assert output(described) == [
        "Client metrics configs for slow are:",
        "  interval.ms=1000",
        "  match=client_id=x.*",
        "  metrics=a,b",
    ]
    assert output(after)[1:] == ["  interval.ms=300000", "  match=client_id=x.*", "  metrics=*"]
    assert output(listed) == ["slow"]
    assert output(deleted) == ["Deleted client metrics config for slow."]
    assert output(empty) == [""]


def test_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    with running_host(tmp_path / "data") as first:
        made = tool(first.bootstrap, "--alter", "--generate-name", "--metrics", "*")
    name = output(made)[0].removeprefix("Altered client metrics config for ").removesuffix(".")

    with running_host(tmp_path / "data") as second:
        listed = tool(second.bootstrap, "--list")
        in_force = second.call(lambda: list(second.host.telemetry.subscriptions.by_name))

    assert output(listed) == [name]
    assert in_force == [name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--match", "10"), "INVALID_CONFIG: Illegal client matching pattern: 10"),
        (("--match", "client_id=[unclosed"), "Illegal client matching pattern: client_id=[unclosed"),
        (("--interval", "99"), "INVALID_REQUEST: Invalid value 99 for interval.ms"),
    ],
)
def test_a_refusal_is_one_line_and_status_1(
    host: ThreadedHost, arguments: tuple[str, ...], words: str
) -> None:
    done = tool(host.bootstrap, "--alter", "--name", "bad", *arguments)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Error while executing client metrics command : bad: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_host_knows_the_software_of_the_client(host: ThreadedHost) -> None:
    with Connection(*host.address, client_id="me") as connection:
        contexts = host.call(lambda: [channel.context for channel in host.host.listeners[0].channels])

    assert connection.offered[74].last == 1
    assert [(row.client_software_name, row.client_software_version) for row in contexts] == [
        ("odradek", odradek.__version__)
    ]


def test_the_cluster_has_one_node(admin: AdminClient, host: ThreadedHost) -> None:
    cluster = admin.describe_cluster()

    assert [str(node.address) for node in cluster.nodes] == [host.bootstrap]
    assert cluster.controller_id == cluster.nodes[0].id == 1
    assert cluster.cluster_id == host.host.broker.cluster_id

"""The requests of the Java clients of each version: transactions, groups, and the versions of a broker."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

import pytest

import odradek.testing
from integration.java.jvm import Clients, Jvm
from odradek.testing import RunningHost
from odradek.wire.error_code import ErrorCode

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
TOPIC, GROUP = "copied", "copier"
PATIENCE_S = 60
VERSIONS = {
    "4.3.1": {"ApiVersions": {4}, "TxnOffsetCommit": {5}, "DeleteGroups": {2}},
    "4.4.0": {"ApiVersions": {5}, "TxnOffsetCommit": {6}, "DeleteGroups": {3}},
}
"""The versions of requests that these clients have chosen."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Clients that have ended, and their host."""

    version: str
    host: RunningHost
    printed: dict[str, str]


@pytest.fixture(scope="module")
def finished(clients: Clients) -> Finished:
    """A producer, a consumer and an admin client that copied one record in a transaction."""
    with odradek.testing.host() as host:
        host.topics.create(TOPIC)
        done = clients.jvm.run("odradek.TransactionalOffsets", host.bootstrap, TOPIC, GROUP)
        assert done.status == 0, done.said
        printed = dict(line.split("=", 1) for line in done.out.splitlines())
        return Finished(clients.version, host, printed)


def test_the_offset_is_committed_and_the_group_deleted(finished: Finished) -> None:
    assert finished.printed == {
        "committed": "1",
        "unknown": "GroupIdNotFoundException",
        "deleted": "none",
        "again": "GroupIdNotFoundException",
    }


def test_the_newest_common_versions_are_used(finished: Finished) -> None:
    used = {
        api: {row.version for row in finished.host.requests.of(api)} for api in VERSIONS[finished.version]
    }

    assert used == VERSIONS[finished.version]


def test_each_connection_asks_for_the_versions_once(finished: Finished) -> None:
    asked = finished.host.requests.of("ApiVersions")

    connections = {row.context.connection.connection_id for row in finished.host.requests}
    assert len(asked) == len(connections) > 3
    assert {row.error for row in asked} == {ErrorCode.NONE}


def test_a_client_that_reaches_another_cluster_starts_over(
    newest_jvm: Jvm, odradek_host: RunningHost
) -> None:
    host = odradek_host
    host.topics.create(TOPIC)
    told = host.fault("Metadata", client_id="moved", delay_ms=2_000)
    command = newest_jvm.command("odradek.TelemetryClient", host.bootstrap, TOPIC, "moved", "producer")
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as client:
        told.wait(PATIENCE_S)

        host.call(lambda: setattr(host.host.broker, "cluster_id", "another"))
        host.requests.wait_for("Produce", client_id="moved", count=3, timeout_s=PATIENCE_S)
        client.communicate("\n", timeout=PATIENCE_S)

    errors = [row.error for row in host.requests.of("ApiVersions", client_id="moved")]
    assert ErrorCode.REBOOTSTRAP_REQUIRED in errors
    assert errors[-1] == ErrorCode.NONE

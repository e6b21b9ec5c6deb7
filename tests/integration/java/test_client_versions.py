"""What the Java clients of each version ask for: transactions, groups, and the versions of a broker."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import odradek.testing
from integration.java.jvm import Clients
from odradek.testing import RunningHost
from odradek.wire.error_code import ErrorCode

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
TOPIC, GROUP = "copied", "copier"
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

"""Questions of the console to a cluster: subscriptions, quotas, the lag of forwarders."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.lease import lease_name
from odradek.plugin import ClientQuotaEntity
from odradek.testing import RunningHost
from odradek_console.reading.cluster_view import ClusterView, is_matched
from odradek_console.view import TOPIC, View
from support.watched_clients import WatchedClients, ms


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@pytest.fixture
def view(host: RunningHost) -> ClusterView:
    return ClusterView(lambda: AdminClient(host.bootstrap), TOPIC, kept_s=3_600)


def test_subscriptions(host: RunningHost, view: ClusterView) -> None:
    end_s = int(time.time()) + 3_600
    host.subscribe("a.", interval_ms=500, match={"client_id": "x.*"}, name="some")
    host.subscribe("*", name=lease_name(end_s, "t"))

    lease, some = view.subscriptions()

    assert lease.lease_end_s == end_s
    assert some.to_json() == {
        "name": "some",
        "metrics": "a.",
        "interval_ms": 500,
        "match": "client_id=x.*",
        "lease_end_s": None,
    }


def test_answers_are_kept_until_something_changes(host: RunningHost, view: ClusterView) -> None:
    before = view.subscriptions()
    host.subscribe("*")

    kept = view.subscriptions()
    view.forget()

    assert before == kept == []
    assert [each.name for each in view.subscriptions()] == ["test"]


def test_quotas(host: RunningHost, view: ClusterView) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.alter_client_quotas({ClientQuotaEntity(client_id="x"): {"producer_byte_rate": 5.0}})

    (row,) = view.quotas()

    assert row.to_json() == {"entity": {"client-id": "x"}, "limits": {"producer_byte_rate": 5.0}}


def test_the_lag_of_forwarders(host: RunningHost, view: ClusterView) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.offset_commit("odradek.forwarder.otlp", {(TOPIC, 0): CommittedOffset(0)})
        admin.offset_commit("others", {(TOPIC, 0): CommittedOffset(0)})

    (row,) = view.delivery()

    assert (row.name, row.partitions, row.lag_records) == ("otlp", 1, 0)


@pytest.mark.parametrize(
    ("match", "is_hit"),
    [
        ("", True),
        ("client_id=orders-.*", True),
        ("client_id=orders", False),
        ("client_id=orders-1,client_software_name=apache.*", True),
        ("client_id=orders-1,client_software_name=librdkafka", False),
        ("client_source_port=1", True),
        ("client_id=(", False),
    ],
)
def test_the_clients_that_a_subscription_selects(match: str, is_hit: bool) -> None:
    view = View(AdminClient, now_ms=lambda: ms(60))  # type: ignore[arg-type]
    WatchedClients(view.fleet).push(60)

    (row,) = view.clients()

    assert is_matched(match, row) is is_hit

"""A client is watched from its page, and its subscription is taken back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.plugin.lease import lease_end_s, lease_name
from odradek.testing import RunningHost
from odradek_console.reading.leases import Leases
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import operator_access, page_client
from support.delta_clients import A
from support.watched_clients import WatchedClients


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts()


@pytest.fixture
def console(host: RunningHost) -> Console:
    """A console that knows one client."""
    view = View(lambda: AdminClient(host.bootstrap))
    WatchedClients(view.fleet).push(60, client_id="orders-1", instance=A)
    return make_console(view, view.reader.connect, host.bootstrap, operator_access())


@pytest.fixture
def browser(console: Console) -> Iterator[TestClient]:
    with page_client(make_app(console)) as client:
        client.follow_redirects = False
        yield client


def stored(host: RunningHost) -> dict[str, dict[str, str]]:
    with AdminClient(host.bootstrap) as admin:
        return read_subscriptions(admin)


def test_a_client_is_watched_and_left(host: RunningHost, console: Console, browser: TestClient) -> None:
    (row,) = console.view.clients()
    begin = browser.post("/watch/begin", data={"instance": row.client_instance_id, "seconds": "5"})
    ((name, properties),) = stored(host).items()
    end = browser.post("/watch/end", data={"instance": row.client_instance_id, "name": name})

    assert {begin.status_code, end.status_code} == {HTTPStatus.SEE_OTHER}
    assert begin.headers["location"] == f"/clients/{row.client_instance_id}"
    assert 500 < (lease_end_s(name) or 0) - time.time() <= 600
    assert properties == {
        "metrics": "org.apache.kafka.",
        "interval.ms": "5000",
        "match": f"client_instance_id={row.client_instance_id}".replace("-", r"\-"),
    }
    assert stored(host) == {}


def test_all_clients_of_an_id_are_watched_and_ended_leases_are_deleted(
    host: RunningHost, browser: TestClient
) -> None:
    host.subscribe("*", name=lease_name(int(time.time()) - 5, "ended"))

    browser.post("/watch/begin", data={"instance": "orders-1", "of": "client_id"})

    (properties,) = stored(host).values()
    assert properties["match"] == r"client_id=orders\-1"


@pytest.mark.parametrize(
    ("path", "form", "status"),
    [
        ("begin", {"instance": "nobody"}, HTTPStatus.NOT_FOUND),
        ("begin", {"instance": "orders-1", "seconds": "2"}, HTTPStatus.BAD_REQUEST),
        ("begin", {"instance": "orders-1", "of": "address"}, HTTPStatus.BAD_REQUEST),
        ("end", {"instance": "orders-1", "name": "all"}, HTTPStatus.BAD_REQUEST),
    ],
)
def test_what_cannot_be_watched(
    host: RunningHost, browser: TestClient, path: str, form: dict[str, str], status: HTTPStatus
) -> None:
    host.subscribe("*", name="all")

    assert browser.post(f"/watch/{path}", data=form).status_code == status
    assert list(stored(host)) == ["all"]


def test_a_lease_that_has_ended_is_taken_back_where_no_host_does_it(host: RunningHost) -> None:
    leases, now_s = Leases(), time.time()
    ended, held = lease_name(int(now_s) + 100, "a"), lease_name(int(now_s) + 900, "b")
    for name in (ended, held):
        host.subscribe("*", name=name)
        leases.add(name)

    leases.take_back(lambda: AdminClient(host.bootstrap), now_s + 100)

    assert list(stored(host)) == [held]
    assert leases.names == {held}


def test_a_cluster_that_does_not_answer_is_asked_again() -> None:
    leases = Leases()
    leases.add(lease_name(1, "a"))

    leases.take_back(lambda: AdminClient("127.0.0.1:1", timeout_s=0.2), 2)

    assert len(leases.names) == 1

"""A client is watched from its page, and its subscription is taken back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus

import pytest
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.lease import lease_end_s, lease_name
from odradek.testing import RunningHost
from odradek_console.reading.leases import Leases
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import operator_access, page_client
from support.delta_clients import EPOCH_S, A
from support.waiting import wait_until
from support.watched_clients import WatchedClients

PATIENCE_S = 60


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts()


@pytest.fixture
def console(host: RunningHost) -> Console:
    """A console that knows one client."""
    view = View(lambda: AdminClient(host.bootstrap))
    WatchedClients(view.fleet).push(time.time() - EPOCH_S, client_id="orders-1", instance=A)
    return shown_at(host, view)


def shown_at(host: RunningHost, view: View) -> Console:
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
    begin = browser.post(
        f"/clients/{row.client_instance_id}/watch", data={"seconds": "5", "metrics": "debug"}
    )
    ((name, properties),) = stored(host).items()
    end = browser.post(f"/clients/{row.client_instance_id}/watch/end", data={"name": name})

    assert {begin.status_code, end.status_code} == {HTTPStatus.SEE_OTHER}
    assert begin.headers["location"] == f"/clients/{row.client_instance_id}"
    assert 500 < (lease_end_s(name) or 0) - time.time() <= 600
    assert properties == {
        "metrics": "org.apache.kafka.,io.odradek.observed.client.",
        "interval.ms": "5000",
        "match": f"client_instance_id={row.client_instance_id}".replace("-", r"\-"),
    }
    assert stored(host) == {}


def test_all_clients_of_an_id_are_watched_and_ended_leases_are_deleted(
    host: RunningHost, browser: TestClient
) -> None:
    host.subscribe("*", name=lease_name(int(time.time()) - 5, "ended"))

    browser.post("/clients/orders-1/watch", data={"of": "client_id"})

    (properties,) = stored(host).values()
    assert properties["match"] == r"client_id=orders\-1"


@pytest.mark.parametrize(
    ("path", "form", "status"),
    [
        ("nobody/watch", {}, HTTPStatus.NOT_FOUND),
        ("orders-1/watch", {"seconds": "2"}, HTTPStatus.BAD_REQUEST),
        ("orders-1/watch", {"of": "address"}, HTTPStatus.BAD_REQUEST),
        ("orders-1/watch/end", {"name": "all"}, HTTPStatus.BAD_REQUEST),
    ],
)
def test_what_cannot_be_watched(
    host: RunningHost, browser: TestClient, path: str, form: dict[str, str], status: HTTPStatus
) -> None:
    host.subscribe("*", name="all")

    assert browser.post(f"/clients/{path}", data=form).status_code == status
    assert list(stored(host)) == ["all"]


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        (" , ", "Metrics needs at least one prefix"),
        ("org.apache, a b", "&#39;a b&#39; is no prefix of a metric&#39;s name"),
        ("x" * 1001, "Metrics has 1001 characters"),
    ],
)
def test_a_mistake_is_shown_beside_the_form_with_what_was_typed(
    host: RunningHost, browser: TestClient, metrics: str, problem: str
) -> None:
    found = browser.post(
        "/clients/orders-1/watch", data={"metrics": metrics, "minutes": "30", "of": "client_id"}
    )

    assert found.status_code == HTTPStatus.BAD_REQUEST
    assert problem in found.text[found.text.index('id="watch"') :]
    assert f'name="metrics" value="{metrics}"' in found.text
    assert '<option value="30" selected>' in found.text
    assert '<option value="client_id" selected>' in found.text
    assert stored(host) == {}


def test_links_of_a_refused_form_lead_to_the_client(browser: TestClient) -> None:
    found = browser.get("/clients/orders-1/watch?window=2h")

    assert found.status_code == HTTPStatus.SEE_OTHER
    assert found.headers["location"] == "/clients/orders-1?window=2h"


def test_a_real_client_pushes_more_often_until_the_button(
    odradek_hosts: Callable[..., RunningHost], caplog: pytest.LogCaptureFixture
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    caplog.set_level(logging.INFO, "odradek.audit")
    host = odradek_hosts(telemetry_durability="log")
    host.subscribe("org.apache.kafka.producer.", interval_ms=2_000, name="all")
    connect = partial(AdminClient, host.bootstrap)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": host.bootstrap, "client.id": "orders-1", "log_level": 0}
    )
    with View(connect) as view, page_client(make_app(shown_at(host, view))) as browser:

        def interval_ms() -> int:
            return next((row.interval_ms for row in view.clients()), 0)

        wait_until(lambda: interval_ms() == 2_000, interval_ms, PATIENCE_S)
        browser.post("/clients/orders-1/watch", data={"seconds": "1", "metrics": "*", "of": "client_id"})
        watched = browser.get("/clients/orders-1").text
        wait_until(lambda: interval_ms() == 1_000, interval_ms, PATIENCE_S)
        (name,) = stored(host).keys() - {"all"}
        browser.post("/clients/orders-1/watch/end", data={"name": name})
        wait_until(lambda: interval_ms() == 2_000, interval_ms, PATIENCE_S)
        left = browser.get("/clients/orders-1").text
        producer.flush(30)

    assert "It is told to push every 1s for another" in watched
    assert "It is told to push all metrics, every 1s." in watched
    assert "for another" not in left
    assert list(stored(host)) == ["all"]
    lines = [each.__dict__ for each in caplog.records if "act" in each.__dict__]
    told = [(each["user"], each["act"], each["outcome"]) for each in lines]
    assert told == [("local", "watch.begin", "allowed"), ("local", "watch.end", "allowed")]


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

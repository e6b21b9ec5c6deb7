"""The pushes of a client of librdkafka, read again from the topic of a real host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek.testing import RunningHost
from odradek.topic.telemetry_topic import CODECS
from odradek_console.reading.pushes import read_pushes
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import page_client
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 60
PUSHES = 3
CREATED = "org.apache.kafka.producer.connection.creation.total"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@pytest.fixture
def view(host: RunningHost) -> Iterator[View]:
    """Two producers that have pushed some times and ended."""
    host.subscribe("org.apache.kafka.producer.", interval_ms=300)
    host.topics.create("orders")
    with View(lambda: AdminClient(host.bootstrap)) as view:
        with working_clients(host.bootstrap, "orders", producers=["orders-0", "orders-1"]):
            wait_until(
                lambda: len(view.clients()) == 2 and all(row.pushes >= PUSHES for row in view.clients()),
                view.clients,
                PATIENCE_S,
            )
        yield view


@pytest.fixture
def pages(host: RunningHost, view: View) -> Iterator[TestClient]:
    with page_client(make_app(make_console(view, view.reader.connect, host.bootstrap))) as found:
        yield found


def push_with(metric: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return next(row for row in rows if metric in [each["metric"] for each in row["decoded"]["points"]])


def test_the_pushes_are_decoded(pages: TestClient) -> None:
    found = pages.get("/api/v1/clients/orders-0/pushes").json()

    rows = found["pushes"]
    assert len(rows) >= PUSHES
    assert [row["offset"] for row in rows] == sorted((row["offset"] for row in rows), reverse=True)
    assert {row["codec"] for row in rows} <= set(CODECS)
    assert {(row["error"], row["decoded"]["problem"]) for row in rows} == {("", "")}
    assert all(row["size"] > 0 for row in rows if row["decoded"]["points"])
    row = push_with(CREATED, rows)
    assert {each["metric"]: each["type"] for each in row["decoded"]["points"]}[CREATED] == "sum"
    assert (row["address"], row["interval_ms"]) == ("127.0.0.1", 300)


def test_one_push_of_the_page_is_chosen_by_the_url(pages: TestClient) -> None:
    offset = push_with(CREATED, pages.get("/api/v1/clients/orders-0/pushes").json()["pushes"])["offset"]

    whole = pages.get("/clients/orders-0/pushes")
    one = pages.get(f"/clients/orders-0/pushes?push={offset}&metric=*creation.total")
    table = pages.get(f"/clients/orders-0/pushes.csv?push={offset}&metric=*creation.total")

    assert whole.status_code == one.status_code == table.status_code == 200
    assert f'href="?push={offset}#push" aria-current="true"' in one.text
    assert "1 row" in one.text
    assert table.text.splitlines()[1].startswith(f"{CREATED},")
    assert pages.get("/clients/orders-0/pushes?push=999999").status_code == 400
    assert pages.get("/clients/orders-0/pushes", headers={"X-Live": "1"}).status_code == 204


def test_reading_has_bounds(host: RunningHost, view: View) -> None:
    places = view.places("orders-0")
    assert places is not None
    key = view.clients(lambda row: row.client_id == "orders-0")[0].client_instance_id
    topic = view.settings.topic
    with AdminClient(host.bootstrap) as admin:
        few = read_pushes(admin, topic, places, key, most_bytes=1)
        late = read_pushes(admin, topic, places, key, most_s=-1.0)
        other = read_pushes(admin, topic, places, "x")
        again = read_pushes(admin, topic, places._replace(topic_id="00"), key)
        admin.delete_records({(topic, places.partition): places.offsets[-1]})
        deleted = read_pushes(admin, topic, places, key)

    assert (len(few.pushes), len(few.notes)) == (1, 1)
    assert (late.pushes, late.notes) == ((), ("Older pushes were not read: it took longer than -1 s.",))
    assert other.pushes == ()
    assert again.notes == ("The topic was created again since its last push.",)
    assert len(deleted.pushes) == 1
    assert deleted.notes == ("Older pushes are no longer in the topic.",)

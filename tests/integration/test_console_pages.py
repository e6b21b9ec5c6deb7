"""The pages of the console that ask the cluster, at a real host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus

import pytest
from contrib.capture.ports import free_port
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.lease import lease_name
from odradek.client.producer import Producer
from odradek.plugin import ClientQuotaEntity
from odradek.testing import RunningHost
from odradek.wire.record import Record
from odradek_console.view import TOPIC, View
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from support.console_client import operator_access, page_client
from support.waiting import wait_until
from support.watched_clients import WatchedClients, ms, total

DEAD_LETTERS = "copies_dead_letter"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@pytest.fixture
def console(host: RunningHost) -> Iterator[Console]:
    """A console whose clients are known without a topic, and whose cluster is the host."""

    def connect() -> AdminClient:
        return AdminClient(host.bootstrap)

    view = View(connect, now_ms=lambda: ms(100))
    clients = WatchedClients(view.fleet)
    for number in range(3):
        for second in (10, 60):
            name = "producer.record.send.total"
            push = total(name, 5.0, second, second - 10)
            clients.push(second, push, client_id=f"orders-{number}", instance=bytes([number + 1]) * 16)
    found = make_console(view, connect, host.bootstrap, operator_access())
    found.now_ms = view.now_ms
    found.watch.start()
    yield found
    found.watch.stop()


@pytest.fixture
def browser(console: Console) -> Iterator[TestClient]:
    with page_client(make_app(console)) as client:
        yield client


def test_a_subscription_is_tried_created_changed_and_deleted(
    host: RunningHost, console: Console, browser: TestClient
) -> None:
    fields = {
        "name": "orders",
        "metrics": "org.apache.kafka.producer.",
        "interval.ms": "5000",
        "match": "client_id=orders-[01]",
    }
    wait_until(lambda: console.history.known is not None, "the first look at the subscriptions", 30)

    tried = browser.get("/subscriptions/edit", params=fields)
    before = browser.get("/api/v1/subscriptions").json()["subscriptions"]
    created = browser.post("/subscriptions/save", data=fields)
    (row,) = browser.get("/api/v1/subscriptions").json()["subscriptions"]
    wait_until(lambda: len(console.history.changes()) == 1, "the creation", 30)
    browser.post("/subscriptions/save", data=fields | {"interval.ms": ""})
    (changed,) = browser.get("/api/v1/subscriptions").json()["subscriptions"]
    wait_until(lambda: len(console.history.changes()) == 2, "the change", 30)
    browser.post("/subscriptions/delete", data={"name": "orders"})
    wait_until(lambda: len(console.history.changes()) == 3, "the deletion", 30)
    changes = browser.get("/api/v1/changes?sort=time").json()["changes"]

    assert "<strong>2</strong> clients" in tried.text
    assert "<strong>2</strong> known series" in tried.text
    assert "<strong>0.4</strong> pushes per second" in tried.text
    assert before == []
    assert "orders" in created.text
    assert (row["interval_ms"], row["clients"], row["series"]) == (5_000, 2, 2)
    assert changed["interval_ms"] is None
    assert sorted(each["act"] for each in changes) == ["changed", "created", "deleted"]
    assert browser.get("/api/v1/subscriptions").json()["subscriptions"] == []


def test_a_preset_is_a_subscription_by_name(browser: TestClient) -> None:
    fields = {"name": "mine", "metrics": "debug", "interval.ms": "", "match": ""}

    tried = browser.get("/subscriptions/edit", params=fields)
    saved = browser.post("/subscriptions/save", data=fields)
    (row,) = browser.get("/api/v1/subscriptions").json()["subscriptions"]

    assert "The cluster accepts these properties." in tried.text
    assert "or a preset: essential, consumer," in tried.text
    assert ">debug<" in saved.text
    assert row["metrics"] == "org.apache.kafka.,io.odradek.observed.client."
    assert row["interval_ms"] == 10_000


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"interval.ms": "5"}, "interval.ms"),
        ({"match": "client_id=["}, "match"),
        ({"match": "nothing=x"}, "nothing"),
        ({"name": ""}, "needs a name"),
        ({"metrics": "a" * 20_001}, "more than 20000 characters"),
    ],
)
def test_a_subscription_that_the_cluster_refuses_is_shown_with_its_fields(
    browser: TestClient, changed: dict[str, str], words: str
) -> None:
    fields = {"name": "orders", "metrics": "a.", "interval.ms": "5000", "match": ""} | changed

    tried = browser.get("/subscriptions/edit", params=fields)
    saved = browser.post("/subscriptions/save", data=fields)

    for answer in (tried, saved):
        assert answer.status_code == HTTPStatus.BAD_REQUEST
        assert words in answer.text
        assert fields["metrics"] in answer.text
    assert browser.get("/api/v1/subscriptions").json()["subscriptions"] == []


def test_a_lease_tells_when_it_ends(host: RunningHost, browser: TestClient) -> None:
    host.subscribe("*", name=lease_name(int(time.time()) + 3_600, "t"))

    (row,) = browser.get("/api/v1/subscriptions").json()["subscriptions"]

    assert row["lease_end_s"] > time.time()
    assert "was set for a while" in browser.get("/subscriptions/edit", params={"name": row["name"]}).text


def test_quotas(host: RunningHost, browser: TestClient) -> None:
    with AdminClient(host.bootstrap) as admin:
        limits: dict[str, float | None] = {"producer_byte_rate": 2_000_000.0}
        admin.alter_client_quotas({ClientQuotaEntity(user="ann", client_id="x"): limits})
        admin.alter_client_quotas({ClientQuotaEntity(client_id=None): limits})

    page = browser.get("/quotas").text
    rows = browser.get("/api/v1/quotas?producer_byte_rate=%3E1000").json()["quotas"]

    assert "(default)" in page
    assert "/?client_id=x&amp;principal=User%3Aann" in page
    assert [row["entity"] for row in rows] == [{"client-id": None}, {"client-id": "x", "user": "ann"}]


def test_pushes_are_delivered_again(host: RunningHost, console: Console, browser: TestClient) -> None:
    group, partition = "odradek.forwarder.otlp", ("copies", 0)
    console.cluster.topic = partition[0]
    host.topics.create(partition[0])
    with AdminClient(host.bootstrap) as admin:
        Producer(admin).send({partition: [Record(b"k", b"v", timestamp_ms=ms(at)) for at in (10, 50, 90)]})
        admin.offset_commit(group, {partition: CommittedOffset(3)})

        page = browser.get("/delivery")
        browser.post("/delivery/again", data={"group": group, "minutes": "1"})
        since = admin.offset_fetch(group)[partition].offset
        waiting = browser.get("/api/v1/delivery").json()["delivery"]
        browser.post("/delivery/again", data={"group": group, "partition": "0", "offset": "0"})
        first = admin.offset_fetch(group)[partition].offset
        beyond = browser.post("/delivery/again", data={"group": group, "partition": "0", "offset": "9"})

    assert group in page.text
    assert since == 1
    assert waiting == [{"name": "otlp", "group_id": group, "partitions": 1, "lag_records": 2}]
    assert first == 0
    assert beyond.status_code == HTTPStatus.BAD_GATEWAY
    assert "offset 9 cannot be delivered again" in beyond.text


@pytest.mark.parametrize(
    "form",
    [{}, {"group": "other"}, {"group": "odradek.forwarder.otlp", "minutes": "x"}],
    ids=["no group", "an unknown group", "no number"],
)
def test_what_cannot_be_delivered_again(host: RunningHost, browser: TestClient, form: dict[str, str]) -> None:
    with AdminClient(host.bootstrap) as admin:
        admin.offset_commit("odradek.forwarder.otlp", {(TOPIC, 0): CommittedOffset(0)})

    assert browser.post("/delivery/again", data=form).status_code == HTTPStatus.BAD_REQUEST


def test_dead_letters(host: RunningHost, console: Console, browser: TestClient) -> None:
    console.cluster.topic = "copies"
    headers = (
        ("client_id", b"orders-1"),
        ("dead_letter_reason", b"HTTP 400: <b>no</b>"),
        ("dead_letter_forwarder", b"otlp"),
        ("dead_letter_partition", b"0"),
        ("dead_letter_offset", b"7"),
    )
    none = browser.get("/api/v1/dead-letters").json()
    host.topics.create(DEAD_LETTERS)
    with AdminClient(host.bootstrap) as admin:
        letter = Record(b"AQEBAQEBAQEBAQEBAQEBAQ", b"x", timestamp_ms=ms(10), headers=headers)
        Producer(admin).send({(DEAD_LETTERS, 0): [letter, letter._replace(headers=())]})
    console.cluster.forget()

    found = browser.get("/api/v1/dead-letters?sort=origin_offset").json()["dead-letters"]

    assert none["total"] == 0
    assert [each["origin_offset"] for each in found] == [-1, 7]
    assert found[1]["reason"] == "HTTP 400: <b>no</b>"
    assert "HTTP 400: &lt;b&gt;no&lt;/b&gt;" in browser.get("/delivery").text


def test_the_host(host: RunningHost, browser: TestClient) -> None:
    brokers = browser.get("/api/v1/brokers").json()["brokers"]
    settings = browser.get("/api/v1/configs?name=telemetry.max.bytes").json()["configs"]

    assert [f"{each['host']}:{each['port']}" for each in brokers] == [host.bootstrap]
    assert settings[0]["value"] == "1048576"
    page = browser.get("/host").text
    assert "telemetry.max.bytes" in page
    assert "<dt>Refused logins</dt><dd>0</dd>" in page
    assert "<dt>Slow connections</dt><dd>0</dd>" in page


def test_a_cluster_that_is_away_is_said_on_the_page(
    host: RunningHost, console: Console, browser: TestClient
) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    console.cluster.connect = lambda: AdminClient(nobody, timeout_s=1.0)
    console.cluster_name = nobody

    page, api = browser.get("/quotas"), browser.get("/api/v1/quotas")

    assert page.status_code == api.status_code == HTTPStatus.BAD_GATEWAY
    assert nobody in page.text
    assert nobody in api.json()["error"]

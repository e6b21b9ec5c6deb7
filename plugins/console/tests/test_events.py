"""What has changed, and whether a deploy has changed anything."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import no_cluster, page_client
from support.watched_clients import JAVA, WatchedClients, level, ms, total

LATENCY, SENT = "producer.request.latency.avg", "producer.record.send.total"
DEPLOY_S, NOW_S = 14_400, 28_805
NEW = JAVA | {"client_software_version": "4.4.0"}


def site(before: tuple[float, float], after: tuple[float, float]) -> TestClient:
    """An application whose two instances were replaced four hours ago. Latency and rate of each."""
    view = View(no_cluster, now_ms=lambda: ms(NOW_S))
    clients = WatchedClients(view.fleet)
    for at in range(60, NOW_S, 60):
        is_new = at > DEPLOY_S
        latency, rate = after if is_new else before
        for number in range(2):
            clients.push(
                at,
                level(LATENCY, latency, at),
                total(SENT, 60 * rate, at, at - 60),
                client_id=f"orders-{number}",
                instance=bytes([number + 10 * is_new + 1]) * 16,
                terminating=not is_new and at == DEPLOY_S,
                **(NEW if is_new else {}),
            )
    console = make_console(view, no_cluster, "localhost:9092")
    console.now_ms = view.now_ms
    return page_client(make_app(console))


def deploy(pages: TestClient) -> dict[str, Any]:
    (found,) = pages.get("/api/v1/events").json()["events"]
    return dict(found)


def test_a_deploy_that_made_an_application_slow() -> None:
    pages = site((5, 100), (400, 100))

    found = deploy(pages)

    assert found["text"] == "orders: apache-kafka-java 4.3.0 → apache-kafka-java 4.4.0, 2 instances"
    assert found["changed"] == ["latency 5 ms → 400 ms"]
    assert found["same"] == ["records 200/s"]


def test_a_deploy_that_changed_nothing() -> None:
    found = deploy(site((5, 100), (6, 110)))

    assert (found["changed"], found["same"]) == ([], ["latency 6 ms", "records 220/s"])


@pytest.mark.parametrize("path", ["/history", "/events.csv"])
def test_the_page_and_the_file(path: str) -> None:
    assert "latency 5 ms → 400 ms" in site((5, 100), (400, 100)).get(path).text


def test_the_first_page_leads_there() -> None:
    assert '<a href="/history">' in site((5, 100), (5, 100)).get("/").text

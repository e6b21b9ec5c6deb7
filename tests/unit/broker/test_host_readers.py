"""The lag of clients that read from a host, whether they commit or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from odradek.broker.fetch import fetch_reads
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from support.data_requests import fetch_request
from support.lag_scene import LagScene

ADDRESS = "127.0.0.1"
VERSION = 12


class Scene(LagScene):
    """A host whose clients are measured."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(clients=True, **settings)

    def fetch(self, offset: int = 0, **fields: Any) -> FetchResponse:
        answer: FetchResponse = self.client.send(fetch_request("t", offset, **fields), VERSION)
        return answer

    def ask(self, request: FetchRequest) -> FetchResponse:
        answer: FetchResponse = self.client.send(request, VERSION)
        return answer

    def shown(self, *place: str) -> Mapping[str, float]:
        """The series of the client, by metric without `client.`; by default of partition 0 of `t`."""
        wanted = (self.client.client_id or "", ADDRESS, *(place or ("t", "0")))
        return {
            name.removeprefix("client."): shown[wanted]
            for name, shown in sorted(self.series.items())
            if wanted in shown
        }


def test_a_client_that_commits_nowhere_has_a_lag_in_records_and_in_seconds() -> None:
    scene = Scene()
    scene.fetch()
    scene.round()
    scene.write(10)
    scene.fetch(4)
    scene.round()
    scene.fetch(4)
    scene.round()

    assert scene.shown() == {"lag": 6, "position": 4, "lag.time": pytest.approx(60, abs=4), "fetch.age": 0}


def test_the_lag_goes_on_while_a_client_does_not_fetch() -> None:
    scene = Scene()
    scene.fetch()
    scene.round()
    scene.write(3)
    scene.round(3)

    shown = scene.shown()
    assert (shown["lag"], shown["position"]) == (3, 0)
    assert shown["fetch.age"] == pytest.approx(90, abs=31)


def test_a_session_keeps_the_positions_that_it_does_not_name() -> None:
    scene = Scene()
    scene.write(20)
    opened = scene.fetch(5, session_epoch=0)
    assert opened.session_id
    scene.round()
    for epoch in range(1, 4):
        scene.ask(FetchRequest(session_id=opened.session_id, session_epoch=epoch))
    scene.round()

    assert scene.shown() == {"lag": 15, "position": 5, "lag.time": pytest.approx(60, abs=6), "fetch.age": 0}


def test_a_reader_of_committed_records_is_behind_the_last_stable_offset() -> None:
    scene = Scene()
    scene.write(4)
    scene.write_in_transaction(2)
    scene.fetch(1)
    scene.round()
    assert scene.shown()["lag"] == 5
    scene.fetch(1, isolation_level=1)
    scene.round()
    assert scene.shown()["lag"] == 3


def test_the_series_end_a_minute_after_the_connection() -> None:
    scene = Scene()
    scene.write(3)
    scene.fetch(1)
    scene.round()
    assert scene.broker.fetch_reads is not None
    scene.broker.fetch_reads.connection_closed(
        scene.client.connection.connection_id, scene.clock.monotonic_ms()
    )
    scene.round()
    assert scene.shown()["lag"] == 2
    scene.round(2)
    assert scene.shown() == {}
    assert scene.records[-1].payload.terminating
    assert (scene.broker.fetch_reads.connections, scene.broker.fetch_reads.closed) == ({}, [])


def test_a_topic_that_is_deleted_has_no_series_any_more() -> None:
    scene = Scene()
    scene.write(3)
    scene.fetch(1)
    scene.round()
    scene.broker.topics.delete(scene.broker.topics.by_name["t"])
    scene.round(2)

    assert scene.shown() == {}


def test_positions_beyond_the_bound_are_forgotten_until_the_next_fetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fetch_reads, "MOST_PLACES", 5)
    scene = Scene()
    reads = scene.broker.fetch_reads
    assert reads is not None
    scene.ask(fetch_request("t", *[1] * 6))
    assert reads.places == 0
    scene.ask(fetch_request("t", *[1] * 5))
    assert reads.places == 5
    scene.ask(fetch_request("t", *[2] * 5))
    assert reads.places == 5


def test_the_figures_of_the_rounds_are_of_clients() -> None:
    scene = Scene()
    scene.write(3)
    scene.fetch(1)
    scene.round()
    rows = {(row.name, *row.attributes.values()): row.value for row in scene.rounds.metric_rows()}

    assert rows["odradek.lag.clients.series",] == 7
    assert rows["odradek.lag.clients.series.left.out", "clients"] == 0

"""Gateways and hosts by their metrics: who is up, and whose destination takes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.endpoints.http_exchange import NoAnswer
from odradek_console.reading import programs
from odradek_console.reading.programs import ProgramRow, Programs
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import no_cluster, page_client

URL = "http://10.0.0.9:9464"
PAGE = """# TYPE odradek_up gauge
odradek_up 1
# TYPE odradek_connections gauge
odradek_connections{{listener="A"}} 5
odradek_connections{{listener="B"}} 2
# TYPE odradek_gateway_ready gauge
odradek_gateway_ready 1
# TYPE odradek_forwarder_queued gauge
odradek_forwarder_queued{{plugin="otlp"}} {waiting}
odradek_forwarder_queued{{plugin="prometheus"}} 0
# TYPE odradek_forwarder_delivered counter
odradek_forwarder_delivered_total{{plugin="otlp"}} {delivered}
odradek_forwarder_delivered_total{{plugin="prometheus"}} 9
"""


class Answer:
    status, is_success = 200, True

    def __init__(self, text: str) -> None:
        self.body = text.encode()


class Scene:
    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.answer: Callable[[], Answer] = lambda: Answer(PAGE.format(waiting=0, delivered=1))
        self.programs = Programs([URL], lambda: self.now_s)
        patched.setattr(programs, "exchange", lambda url, **_: self.answer())

    def after(self, seconds: float, waiting: int, delivered: int) -> ProgramRow:
        self.now_s += seconds
        self.answer = lambda: Answer(PAGE.format(waiting=waiting, delivered=delivered))
        return self.asked()

    def asked(self) -> ProgramRow:
        self.programs.ask()
        return self.programs.rows()[0]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_a_gateway_with_its_destinations(scene: Scene) -> None:
    row = scene.after(0, waiting=3, delivered=7)

    assert (row.kind, row.state, row.connections) == ("gateway", "up", 7)
    assert (row.destination, row.waiting, row.delivered, row.health) == ("otlp", 3, 7, "well")
    assert [each.destination for each in scene.programs.rows()] == ["otlp", "prometheus"]


def test_a_page_that_nobody_expected_is_told_once_and_the_others_are_asked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def exchange(url: str, **_: object) -> Answer:
        if url.startswith(URL):
            raise RuntimeError("no such luck")
        return Answer(PAGE.format(waiting=0, delivered=1))

    monkeypatch.setattr(programs, "exchange", exchange)
    both = Programs([URL, "http://127.0.0.1:2"])
    both.ask()
    both.ask()

    assert [each.state for each in both.rows()] == [
        "its page cannot be read: RuntimeError('no such luck')",
        "up",
        "up",
    ]
    assert len(caplog.records) == 1


def test_a_destination_that_takes_nothing_while_pushes_wait_is_lost(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7)
    assert scene.after(29, waiting=9, delivered=7).health == "well"

    row = scene.after(11, waiting=12, delivered=7)
    assert (row.health, row.still_s) == ("lost", 40)

    assert scene.after(10, waiting=12, delivered=8).health == "well"


def test_one_that_has_nothing_to_take_is_well(scene: Scene) -> None:
    scene.after(0, waiting=0, delivered=7)

    assert scene.after(600, waiting=0, delivered=7).health == "well"
    assert scene.after(10, waiting=4, delivered=7).health == "well"


def no_answer() -> Answer:
    raise NoAnswer("connection refused")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (no_answer, "connection refused"),
        (lambda: Answer("<html>"), ""),
        (lambda: Answer("# TYPE x gauge\nx 1\n"), "its page has no metrics of a gateway or a host"),
    ],
)
def test_a_program_that_does_not_answer_keeps_what_it_told(
    scene: Scene, answer: Callable[[], Answer], problem: str
) -> None:
    scene.after(0, waiting=3, delivered=7)
    scene.answer = answer

    row = scene.asked()

    assert row.state != "up"
    assert problem in row.state
    assert (row.kind, row.destination) == ("gateway", "otlp")


def test_the_table_is_json(scene: Scene) -> None:
    scene.asked()
    console = make_console(View(no_cluster), no_cluster, "localhost:9092")
    console.programs = scene.programs

    (first, _) = page_client(make_app(console)).get("/api/v1/programs").json()["programs"]

    assert (first["program"], first["destination"], first["health"]) == (URL, "otlp", "well")

"""Gateways and hosts by their metrics: who is up, what each holds, and whose destination takes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from odradek.endpoints.http_exchange import NoAnswer
from odradek_console.program_rows import DestinationRow, ProgramRow
from odradek_console.reading import programs
from odradek_console.reading.programs import Programs, samples_of
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from odradek_console.web.pages.programs import all_programs
from support.console_client import no_cluster, page_client
from support.watched_clients import WatchedClients, ms

URL = "http://10.0.0.9:9464"
PAGE = """# TYPE target_info gauge
target_info{{service_instance_id="east",service_name="odradek",service_version="0.1.0"}} 1
# TYPE odradek_up gauge
odradek_up 1
# TYPE process_uptime_seconds gauge
process_uptime_seconds 7200
# TYPE process_memory_usage_bytes gauge
process_memory_usage_bytes{{gateway_worker="0"}} 60000000
process_memory_usage_bytes{{gateway_worker="1"}} 50000000
# TYPE odradek_connections gauge
odradek_connections{{listener="A"}} 5
odradek_connections{{listener="B"}} 2
# TYPE odradek_queued_bytes gauge
odradek_queued_bytes{{of="requests"}} 10
odradek_queued_bytes{{of="pairs"}} 30
# TYPE odradek_queued_limit_bytes gauge
odradek_queued_limit_bytes{{of="requests"}} 100
odradek_queued_limit_bytes{{of="pairs"}} 60
# TYPE odradek_gateway_ready gauge
odradek_gateway_ready {ready}
# TYPE odradek_gateway_switch gauge
odradek_gateway_switch 2
# TYPE odradek_gateway_workers gauge
odradek_gateway_workers 2
# TYPE odradek_forwarder_queued gauge
odradek_forwarder_queued{{plugin="otlp"}} {waiting}
odradek_forwarder_queued{{plugin="prometheus"}} 0
# TYPE odradek_forwarder_delivered counter
odradek_forwarder_delivered_total{{plugin="otlp"}} {delivered}
odradek_forwarder_delivered_total{{plugin="prometheus"}} 9
# TYPE odradek_forwarder_dropped counter
odradek_forwarder_dropped_total{{plugin="otlp",reason="expired"}} 3
# TYPE odradek_forwarder_rejected counter
odradek_forwarder_rejected_total{{plugin="otlp",reason="no"}} 4
# TYPE odradek_forwarder_failing_seconds gauge
{failing}
"""
FAILING = 'odradek_forwarder_failing_seconds{{plugin="otlp",error="Retry: refused"}} {seconds}'


def text(waiting: int = 0, delivered: int = 1, ready: int = 1, failing: str = "") -> str:
    return PAGE.format(waiting=waiting, delivered=delivered, ready=ready, failing=failing)


class Answer:
    def __init__(self, page: str, status: int = 200) -> None:
        self.body, self.status, self.is_success = page.encode(), status, status == 200


class Scene:
    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.answer: Callable[[], Answer] = lambda: Answer(text())
        self.programs = Programs([URL], lambda: self.now_s)
        patched.setattr(programs, "exchange", lambda url, **_: self.answer())

    def after(self, seconds: float, waiting: int, delivered: int, failing: str = "") -> DestinationRow:
        self.now_s += seconds
        self.answer = lambda: Answer(text(waiting, delivered, failing=failing))
        self.programs.ask()
        return self.programs.destinations()[0]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_a_gateway_and_what_it_holds(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7)
    (row,) = scene.programs.rows()

    assert (row.name, row.kind, row.state, row.version) == ("east", "gateway", "up", "0.1.0")
    assert (row.uptime_s, row.memory_bytes, row.connections) == (7200, 110_000_000, 7)
    assert (row.held, row.switch, row.waiting, row.problem) == (0.5, "no-telemetry", 3, "")
    assert row.gateways == ("east", "east-1")


def test_a_gateway_that_no_broker_answers(scene: Scene) -> None:
    scene.answer = lambda: Answer(text(ready=0))
    scene.programs.ask()

    assert scene.programs.rows()[0].problem == "gateway east: no broker answers it"


@pytest.mark.parametrize(
    ("page", "kind"), [("odradek_up 1\nodradek_connections 2\n", "host"), ("odradek_up 1\n", "forwarder")]
)
def test_programs_that_are_no_gateways(scene: Scene, page: str, kind: str) -> None:
    scene.answer = lambda: Answer(page)
    scene.programs.ask()
    (row,) = scene.programs.rows()

    assert (row.kind, row.name, row.switch, row.held) == (kind, "10.0.0.9:9464", "", None)


def test_its_destinations(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7)
    row = scene.after(10, waiting=2, delivered=27)

    assert (row.destination, row.waiting, row.delivered, row.health) == ("otlp", 2, 27, "well")
    assert (row.per_s, row.done_s, row.given_up, row.error) == (2, 20, 7, "")
    grown = scene.after(10, waiting=40, delivered=0)
    assert (grown.per_s, grown.done_s) == (None, None)
    assert [each.destination for each in scene.programs.destinations()] == ["otlp", "prometheus"]


def test_a_page_that_nobody_expected_is_told_once_and_the_others_are_asked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def exchange(url: str, **_: object) -> Answer:
        if url.startswith(URL):
            raise RuntimeError("no such luck")
        return Answer(text())

    monkeypatch.setattr(programs, "exchange", exchange)
    both = Programs([URL, "http://127.0.0.1:2"])
    both.ask()
    both.ask()

    assert [each.state for each in both.rows()] == [
        "its page cannot be read: RuntimeError('no such luck')",
        "up",
    ]
    assert len(caplog.records) == 1


def test_a_destination_that_takes_nothing_while_pushes_wait_is_lost(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7)
    assert scene.after(29, waiting=9, delivered=7).health == "well"

    row = scene.after(11, waiting=12, delivered=7)
    assert (row.health, row.still_s) == ("lost", 40)
    assert scene.programs.rows()[0].problem == "gateway east has lost otlp"

    assert scene.after(10, waiting=12, delivered=8).health == "well"


def test_the_program_knows_since_when_and_why(scene: Scene) -> None:
    row = scene.after(0, waiting=3, delivered=7, failing=FAILING.format(seconds=600))

    assert (row.health, row.still_s, row.error) == ("lost", 600, "Retry: refused")


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
    scene.after(0, waiting=0, delivered=7)
    scene.answer = answer
    scene.now_s += 600
    scene.programs.ask()
    (row,) = scene.programs.rows()

    assert row.state != "up"
    assert problem in row.state
    assert row.problem.startswith("gateway east: ")
    assert (row.kind, row.lost) == ("gateway", ())
    assert scene.programs.destinations()[0].health == "well"


def test_the_pages_and_tables(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7, failing=FAILING.format(seconds=600))
    console = make_console(View(no_cluster), no_cluster, "localhost:9092")
    console.programs = scene.programs
    browser = page_client(make_app(console))

    (row,) = browser.get("/api/v1/programs").json()["programs"]
    (first, _) = browser.get("/api/v1/destinations").json()["destinations"]
    page = browser.get("/programs/http/10.0.0.9%3A9464").text

    assert (row["program"], row["name"], row["clients"], row["lost"]) == (URL, "east", 0, ["otlp"])
    assert (first["program"], first["destination"], first["health"]) == (URL, "otlp", "lost")
    for said in (
        "Gateway east",
        "0.1.0",
        "2 h",
        "110 MB",
        "clients are offered no telemetry",
        "Retry: refused",
    ):
        assert said in page, said
    assert "gateway east has lost otlp" in browser.get("/").text
    assert "east" in browser.get("/programs").text
    assert browser.get("/programs/http/10.0.0.8%3A9464").status_code == 404


def test_gateways_whose_metrics_nobody_reads_are_there_by_their_clients(scene: Scene) -> None:
    scene.programs.ask()
    view = View(no_cluster, now_ms=lambda: ms(60))
    clients = WatchedClients(view.fleet)
    for number, gateway in enumerate(("east", "east-1", "west")):
        clients.push(60, instance=bytes([number + 1]) * 16, client_id=f"c{number}", gateway=gateway)
    console = make_console(view, no_cluster, "localhost:9092")
    console.programs = scene.programs

    found = {(row.name, row.program, row.clients, row.problem) for row in all_programs(console)}

    assert found == {("east", URL, 2, ""), ("west", "", 1, "")}
    browser = page_client(make_app(console))
    assert "/?gateway=west" in browser.get("/programs").text
    assert '<a href="/programs/http/10.0.0.9%3A9464">east-1</a>' in browser.get("/clients/c1").text
    assert "<dd>west</dd>" in browser.get("/clients/c2").text


def test_a_token_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[object]()
    file = tmp_path / "token"

    def exchange(_url: str, *, headers: dict[str, str], **_: object) -> Answer:
        sent.append(headers.get("authorization"))
        return Answer("a bearer token is required", 401)

    monkeypatch.setattr(programs, "exchange", exchange)
    open_one, closed_one = Programs([URL]), Programs([URL], token=file)
    for text in ("first\n", "second\n"):
        file.write_text(text)
        closed_one.ask()
    open_one.ask()

    assert sent == ["Bearer first", "Bearer second", None]
    assert [each.rows()[0].state for each in (closed_one, open_one)] == [
        "it refuses the token",
        "it needs a token: --program-token-file",
    ]
    file.unlink()
    closed_one.ask()
    assert "No such file" in closed_one.rows()[0].state


def test_only_what_is_looked_at_is_kept() -> None:
    found = samples_of("odradek_up 1\nodradek_other 2\nodradek_gateway_switch NaN\n")

    assert found.keys() == {"odradek_up"}


@pytest.mark.parametrize("value", ["-7", "1e300", "NaN", "+Inf"])
def test_values_that_no_gateway_has_are_no_harm(scene: Scene, value: str) -> None:
    names = ("odradek_gateway_switch", "odradek_gateway_workers", 'odradek_forwarder_queued{other="x"}')
    scene.answer = lambda: Answer("odradek_up 1\n" + "".join(f"{each} {value}\n" for each in names))
    scene.programs.ask()
    (row,) = scene.programs.rows()

    assert row.switch in ("", "full", "rewrite-only")
    assert len(row.gateways) <= 64


def test_values_whose_sum_is_too_large_are_no_harm(scene: Scene) -> None:
    workers = "".join(f'odradek_gateway_workers{{of="{each}"}} 1e308\n' for each in "ab")
    scene.answer = lambda: Answer(f"odradek_up 1\n{workers}")
    scene.programs.ask()

    assert scene.programs.rows()[0].state == "up"


def test_what_a_program_says_is_short_and_printable(scene: Scene) -> None:
    scene.answer = lambda: Answer(f'odradek_up 1\ntarget_info{{service_instance_id="a\\nb{"c" * 999}"}} 1\n')
    scene.programs.ask()
    (row,) = scene.programs.rows()
    assert row.name.startswith("a\ufffdb")
    assert len(row.name) < 300

    scene.answer = lambda: Answer(f"odradek_up {'x' * 9_999}\n")
    scene.programs.ask()
    assert 0 < len(scene.programs.rows()[0].problem) < 600


def test_a_page_with_more_values_than_a_program_has(scene: Scene) -> None:
    scene.answer = lambda: Answer("odradek_up 1\n" * 20_001)
    scene.programs.ask()

    assert "more than 20000 values" in scene.programs.rows()[0].state


def test_destinations_that_come_and_go_are_bounded_and_forgotten(scene: Scene) -> None:
    for look in range(3):
        page = [f'odradek_forwarder_queued{{plugin="{look}-{each}"}} 1\n' for each in range(200)]
        scene.answer = partial(Answer, "odradek_up 1\n" + "".join(page))
        scene.programs.ask()
    (program,) = scene.programs.programs

    assert len(program.destinations) == 100
    assert program.moved_s.keys() == program.destinations.keys()


def test_many_lost_destinations_are_counted() -> None:
    row = ProgramRow(program=URL, name="east", kind="host", state="up", lost=tuple("abcdefg"))

    assert row.problem == "host east has lost a, b, c, d, e and 2 more"


def test_a_page_is_as_old_as_its_answer(scene: Scene) -> None:
    scene.after(0, waiting=0, delivered=0)

    def slowly() -> Answer:
        scene.now_s += 20  # it has waited for programs that do not answer
        return Answer(text(delivered=20))

    scene.answer = slowly
    scene.programs.ask()

    assert scene.programs.destinations()[0].per_s == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("s3cret-1\ns3cret-2\n", "a token in printable ASCII"),
        ("s3cr\u00e9t", "a token in printable ASCII"),
        ("", "1 to 65536 bytes of text"),
    ],
)
def test_no_page_shows_what_is_in_the_file_of_the_token(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    asked = Programs(["http://127.0.0.1:1"], token=file)
    asked.ask()

    assert asked.rows()[0].state == f"{file}: expected {problem}"


def test_a_program_that_is_named_twice_is_one() -> None:
    assert len(Programs([URL, f"{URL}/metrics"]).programs) == 1


def test_a_program_that_does_not_answer_takes_nothing_now(scene: Scene) -> None:
    scene.after(0, waiting=3, delivered=7)
    assert scene.after(10, waiting=2, delivered=27).per_s == 2

    scene.answer = no_answer
    scene.programs.ask()

    row = scene.programs.destinations()[0]
    assert (row.per_s, row.done_s, row.waiting) == (None, None, 2)
    assert scene.after(10, waiting=1, delivered=47).per_s == 2


def test_programs_of_one_name_say_so_and_have_pages_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = (URL, "https://10.0.0.9:9464", "http://10.0.0.8:9464")
    down = Answer("", status=503)
    monkeypatch.setattr(programs, "exchange", lambda url, **_: down if "https" in url else Answer(text()))
    view = View(no_cluster, now_ms=lambda: ms(60))
    WatchedClients(view.fleet).push(60, gateway="east", client_id="orders-1")
    console = make_console(view, no_cluster, "localhost:9092")
    console.programs = Programs(urls)
    console.programs.ask()
    browser = page_client(make_app(console))
    link = "/programs/{}/10.0.0.{}%3A9464".format

    rows = all_programs(console)
    assert [(row.name, row.namesakes, row.clients) for row in rows] == [
        ("east", (urls[2],), 1),
        ("10.0.0.9:9464", (), None),
        ("east", (urls[0],), 1),
    ]
    table, one = browser.get("/programs").text, browser.get(link("http", 9)).text
    assert all(f">east ({url})<" in table for url in (urls[0], urls[2]))
    assert table.count("1 (shared)</td>") == 2
    assert f'<a href="{link("http", 8)}"><code>{urls[2]}</code></a>' in one
    assert "it answers 503" in browser.get(link("https", 9)).text
    assert "it answers 503" not in one
    assert browser.get(link("https", 8)).status_code == 404
    assert '<a href="/programs">east</a>' in browser.get("/clients/orders-1").text
    assert replace(rows[0], lost=("otlp",)).problem == f"gateway east ({URL}) has lost otlp"


def test_the_first_page_tells_what_many_programs_have_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "exchange", lambda url, **_: Answer("", status=503))
    console = make_console(View(no_cluster), no_cluster, "localhost:9092")
    console.programs = Programs([f"http://10.0.0.{number}:1" for number in range(30)])
    console.programs.ask()

    page = page_client(make_app(console)).get("/").text

    assert '<a class="bad" href="/programs">30 gateways and hosts are down: 10.0.0.0:1, ' in page
    assert page.count("10.0.0.") == 5

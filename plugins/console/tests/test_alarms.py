"""Alarms: one for each cause, told when it begins and when it is over, whatever the destinations do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odradek.findings.hints import FINDINGS
from odradek.findings.troubles import Kind
from odradek.plugin import ConfigError
from odradek_console.alarms.alarms import Alarms, Message
from odradek_console.alarms.destinations import Destination, destination, masked, read_destinations
from odradek_console.alarms.sender import AlarmSender, SenderSettings
from odradek_console.causes import causes_of, told
from odradek_console.pictures import client_row
from odradek_console.program_rows import ProgramRow
from odradek_console.rows import ClientRow, TroubleRow
from odradek_console.terminal.console import console
from odradek_console.view import View
from support.alarm_receivers import hook, mail_server
from support.console_client import no_cluster
from support.watched_clients import WatchedClients, ms

URL = "https://console.example.org"


def row(number: int, *findings: str, group: str = "billing") -> ClientRow:
    clients = WatchedClients()
    clients.push(60, instance=bytes([number]) * 16, client_id=f"billing-{number}", group_id=group)
    made = client_row(clients.fleet, next(iter(clients.fleet.clients.values())), ms(60))
    troubles = tuple(TroubleRow(id=each, since_ms=0, broker="", is_shared=False) for each in findings)
    return replace(made, findings=findings, troubles=troubles)


def at(alarms: Alarms, second: int, rows: Sequence[ClientRow]) -> list[str]:
    causes = causes_of(rows)
    return [each.title for each in alarms.at(told(rows, causes), causes, second * 1000)]


def titles(alarms: Alarms, rows: Sequence[ClientRow], *seconds: int) -> list[str]:
    return [title for second in seconds for title in at(alarms, second, rows)]


def test_one_alarm_a_cause_told_once_and_told_when_it_is_over() -> None:
    alarms, sick = Alarms(), [row(number, "behind") for number in range(4)]

    assert titles(alarms, sick, 0, 15, 30, 45, 600) == ["behind: group billing, 4 of 4 clients"]
    well = [row(number) for number in range(4)]
    assert titles(alarms, well, 615, 660, 719) == []
    assert titles(alarms, well, 720, 735) == ["Over: behind: group billing, 4 of 4 clients"]
    assert alarms.going_on == {}


def test_a_gateway_that_has_lost_its_destination() -> None:
    alarms = Alarms(URL)
    east = ProgramRow(program="http://10.0.0.9:9464", name="east", kind="gateway", state="up", lost=("otlp",))
    well = replace(east, lost=())
    told = [alarms.at([], [], second * 1000, [east]) for second in (0, 15, 30, 45)]
    over = [alarms.at([], [], second * 1000, [well]) for second in (60, 170)]

    assert told == [
        [],
        [],
        [Message("gateway east has lost otlp", f"{URL}/programs/http/10.0.0.9%3A9464")],
        [],
    ]
    assert [each.title for each in over[1]] == ["Over: gateway east has lost otlp"]


def program(number: int, **facts: Any) -> ProgramRow:
    url = f"http://10.0.0.{number}:9464"
    return ProgramRow(program=url, name=f"g{number}", kind="gateway", **({"state": "up"} | facts))


def of_programs(alarms: Alarms, second: int, *rows: ProgramRow) -> list[Message]:
    return alarms.at([], [], second * 1000, rows)


def test_gateways_that_go_down_together_are_one_alarm() -> None:
    alarms, told = Alarms(URL), list[Message]()
    for second, number in ((0, 8), (15, 29), (30, 50), (45, 50), (600, 50), (615, 3)):
        rows = [program(each, state="timed out" if each < number else "up") for each in range(50)]
        told += of_programs(alarms, second, *rows)
    over = [*of_programs(alarms, 630, program(1)), *of_programs(alarms, 735, program(1))]

    title = "50 gateways are down: g0, g1, g2, g3, g4 and 45 more"
    assert told == [Message(title, f"{URL}/programs")]
    assert [each.title for each in over] == [f"Over: {title}"]
    assert alarms.going_on == {}


def test_a_gateway_that_goes_down_later_is_another_alarm() -> None:
    alarms, told = Alarms(), list[str]()
    looks = {0: (1, 2), 30: (1, 2), 60: (2, 3), 90: (2, 3), 150: (2, 3), 210: (2,), 240: (1, 2), 270: (1, 2)}
    for second, numbers in looks.items():
        rows = [program(each, state="timed out") for each in numbers]
        told += [each.title for each in of_programs(alarms, second, *rows)]

    assert told == [
        "2 gateways are down: g1, g2",
        "gateway g3: timed out",
        "Over: gateway g3: timed out",
        "gateway g1: timed out",
    ]


@pytest.mark.parametrize(
    ("lost", "title"),
    [
        ([("otlp", "kafka"), ("otlp",)], "2 gateways have lost otlp: g0, g1"),
        ([("kafka",), ("otlp",)], "2 gateways have lost destinations: g0, g1"),
    ],
)
def test_what_gateways_have_lost_together_is_named(lost: list[tuple[str, ...]], title: str) -> None:
    alarms, rows = Alarms(), [program(number, lost=each) for number, each in enumerate(lost)]

    assert [each.title for second in (0, 30, 60) for each in of_programs(alarms, second, *rows)] == [title]
    down = [replace(each, state="timed out") for each in rows]
    assert [each.title for second in (75, 105, 300, 400) for each in of_programs(alarms, second, *down)] == [
        "2 gateways are down: g0, g1"
    ]


def test_programs_of_several_kinds_that_are_down() -> None:
    alarms, rows = Alarms(), [program(1, state="x"), replace(program(2, state="y"), kind="host")]

    told = [each.title for second in (0, 30) for each in of_programs(alarms, second, *rows)]

    assert told == ["2 gateways and hosts are down: g1, g2"]


def test_what_comes_and_goes_at_once_is_no_alarm() -> None:
    alarms, sick = Alarms(), [row(1, "stalled")]

    assert titles(alarms, sick, 0, 15) == []
    assert titles(alarms, [row(1)], 30) == []
    assert titles(alarms, sick, 45, 60) == []


def test_an_alarm_that_pauses_is_told_once() -> None:
    alarms, sick = Alarms(), [row(1, "stalled")]

    assert titles(alarms, sick, 0, 30) == ["stalled: 1 client"]
    assert titles(alarms, [row(1)], 60, 120) == []
    assert titles(alarms, sick, 140, 200) == []


def test_clients_that_get_a_cause_are_not_over() -> None:
    alarms = Alarms()
    few, many = [row(1, "behind"), row(2, "behind")], [row(number, "behind") for number in range(4)]

    assert titles(alarms, few, 0, 30) == ["behind: 2 clients"]
    assert titles(alarms, many, 45, 60, 75, 90, 300) == ["behind: group billing, 4 of 4 clients"]


def test_a_message_says_who_what_to_do_and_where() -> None:
    alarms = Alarms(URL)
    rows = [row(number, "stalled", group=f"g{number}") for number in range(2)]
    alarms.at(rows, [], 0)

    (message,) = alarms.at(rows, [], 30_000)

    assert message.title == "stalled: 2 clients"
    question, clients, advice, link = message.body.splitlines()
    assert question.endswith("?")
    assert clients == "Clients: billing-0, billing-1"
    assert advice
    assert link == f"{URL}/?findings=stalled&state=%2A"


def test_every_finding_has_a_message() -> None:
    names = [each.id for each in FINDINGS if each.kind != Kind.NOTE]
    alarms, rows = Alarms(), [row(1, *names)]

    alarms.at(rows, [], 0)

    assert {each.title for each in alarms.at(rows, [], 30_000)} == {f"{name}: 1 client" for name in names}


class Scene:
    """A sender whose clients and destinations a test plays."""

    def __init__(self, *, retry_s: float = 100.0, max_waiting: int = 3) -> None:
        self.now_s = 1_000.0
        self.taken: list[tuple[str, str]] = []
        self.problems: dict[str, str] = {}
        view = View(no_cluster, now_ms=lambda: int(self.now_s * 1000))
        view.reader.progress.is_caught_up, view.reader.progress.problem = True, ""
        places = [Destination(name, self.send_to(name)) for name in ("slack", "mail")]
        settings = SenderSettings(max_waiting=max_waiting, retry_s=retry_s)
        self.sender = AlarmSender(view, Alarms(), places, settings, lambda: self.now_s)

    def send_to(self, name: str):  # type: ignore[no-untyped-def]
        def send(message: Message) -> str:
            if not self.problems.get(name):
                self.taken.append((name, message.title))
            return self.problems.get(name, "")

        return send

    def put(self, *names: str) -> None:
        for name in names:
            self.sender.put(Message(name, "body"), self.now_s)

    def go_on(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now_s += 1
            self.sender.step()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_destination_that_fails_gets_it_later_and_delays_no_other(scene: Scene) -> None:
    scene.problems["slack"] = "503"
    scene.put("one")
    scene.go_on(3)
    assert scene.taken == [("mail", "one")]

    scene.problems.clear()
    scene.go_on(5)

    assert scene.taken == [("mail", "one"), ("slack", "one")]
    assert scene.sender.counts.sent_messages == 2
    assert scene.sender.counts.waiting_messages == 0


def test_a_message_is_given_up_and_counted(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.problems["slack"] = "503"
    scene.put("one")

    scene.go_on(260)

    counts = scene.sender.counts
    assert (counts.failed_messages, counts.waiting_messages) == (1, 0)
    lines = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert lines == ["an alarm was not taken: trying again", "an alarm was given up"]


def test_what_waits_is_bounded_and_the_newest_stay(scene: Scene) -> None:
    scene.problems["slack"] = "503"
    scene.put("one", "two", "three", "four", "five")
    scene.problems.clear()

    scene.go_on(10)

    assert [title for name, title in scene.taken if name == "slack"] == ["three", "four", "five"]
    assert scene.sender.counts.left_out_messages == 4


def test_a_look_that_fails_is_counted_and_few_are_logged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(scene.sender, "step", broken)
    for _ in range(5):
        scene.sender.turn()

    assert scene.sender.counts.failed_looks == 5
    assert [each.getMessage() for each in caplog.records] == [
        f"looking for alarms failed ({number} so far)" for number in (1, 2, 4)
    ]


def test_nothing_is_told_before_the_topic_is_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    def rows_and_causes() -> tuple[list[ClientRow], list[object]]:
        asked.append(1)
        return [row(1, "stalled")], []

    monkeypatch.setattr(scene.sender.view, "rows_and_causes", rows_and_causes)
    scene.sender.view.reader.progress.is_caught_up = False
    scene.go_on(60)
    assert asked == []

    scene.sender.view.reader.progress.is_caught_up = True
    scene.go_on(50)

    assert scene.taken == [("slack", "stalled: 1 client"), ("mail", "stalled: 1 client")]
    assert scene.sender.counts.alarms == 1


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("POST /services/T0AAAA/B0BBBB/cccc failed", "slack://T0AAAA/B0BBBB/cccc/#ops"),
        ("login pass%20word refused at mail.example.org", "mailtos://ann:pass%20word@mail.example.org"),
        ("bad key=sEcret1", "jsons://hooks.example.org/path?key=secret1"),
    ],
)
def test_no_part_of_an_address_is_in_what_is_logged(text: str, url: str) -> None:
    found = masked(text, url)

    for secret in ("T0AAAA", "B0BBBB", "cccc", "pass%20word", "pass word", "sEcret1"):
        assert secret not in found
    assert "mail.example.org" not in text or "mail.example.org" in found


@pytest.mark.parametrize("url", ["console.example.org", "ftp://x", "https://a b", "https://x/?q=1"])
def test_an_address_of_pages_must_be_one(url: str) -> None:
    found = CliRunner().invoke(console, ["--bootstrap-server", "x:1", "--public-url", url])

    assert found.exit_code == 2
    assert "expected http://HOST or https://HOST" in found.output


SECRET = "T0AAAAAAA"


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "alarms.toml"
        path.write_text(text)
        path.chmod(0o600)
        return path

    return written


def test_destinations_of_many_kinds_are_read(file: Callable[[str], Path]) -> None:
    urls = {
        "slack": f"slack://{SECRET}/B0BBBBBBB/cccccccccccccccccccccccc/#ops",
        "mail": "mailtos://ann:secret@mail.example.org?to=oncall@example.org",
        "hook": "jsons://hooks.example.org/path",
        "teams": "matrixs://ann:secret@matrix.example.org/#room",
    }
    text = "".join(f'[[destination]]\nname = "{name}"\nurl = "{url}"\n' for name, url in urls.items())

    assert [each.name for each in read_destinations(file(text))] == list(urls)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected 1 to 20 tables [[destination]]"),
        ("destination = 1", "expected 1 to 20 tables [[destination]]"),
        ("x = [", "expected TOML"),
        (f'[[destination]]\nurl = "slack://{SECRET}"', "expected a table with the keys name, url"),
        (f'[[destination]]\nname = ""\nurl = "slack://{SECRET}"', "expected a printable name of its own"),
        (f'[[destination]]\nname = "a"\nurl = "nothing://{SECRET}"', "expected an address of Apprise"),
        (f'[[destination]]\nname = "a"\nurl = "slack://{SECRET}"', "expected an address of Apprise"),
        ('[[destination]]\nname = "a"\nurl = 1', "expected an address of Apprise"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_its_secrets(
    file: Callable[[str], Path], caplog: pytest.LogCaptureFixture, text: str, told: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_destinations(file(text))

    assert told in str(refused.value)
    assert SECRET not in f"{refused.value}{caplog.text}"


def test_a_file_that_others_can_read_is_warned_of(
    file: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = file(f'[[destination]]\nname = "a"\nurl = "json://localhost/{SECRET}"')
    path.chmod(0o644)

    read_destinations(path)

    assert "addresses of alarms can be read by other users" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.ci
def test_what_a_destination_refuses_is_told_without_its_secrets() -> None:
    refused = destination("", "ops", f"json://127.0.0.1:1/{SECRET}", 60.0)

    problem = refused.send(Message("behind", "Look at it."))

    assert "127.0.0.1" in problem
    assert SECRET not in problem


@pytest.mark.ci
def test_a_mail_and_a_webhook_arrive() -> None:
    with mail_server() as (port, mails), hook() as (url, bodies):
        for address in (f"mailto://127.0.0.1:{port}?from=odradek@example.org&to=ann@example.org", url):
            assert destination("", "ops", address, 60.0).send(Message("behind: group a", "Look at it.")) == ""

    assert [(each["title"], each["message"]) for each in bodies] == [("behind: group a", "Look at it.")]
    assert "Subject: behind: group a" in mails[0]
    assert "Look at it." in mails[0]


def test_a_host_that_is_down_is_told_although_its_topic_cannot_be_read(scene: Scene) -> None:
    down = ProgramRow(program="http://h:1", name="h", kind="host", state="connection refused")
    scene.sender.programs = lambda: [down]
    scene.sender.view.reader.progress.problem = "no broker answers"

    scene.go_on(60)

    assert scene.taken == [(name, "host h: connection refused") for name in ("slack", "mail")]


def test_alarms_of_clients_that_nobody_can_see_stay() -> None:
    alarms, sick = Alarms(), [row(1, "stalled")]

    assert titles(alarms, sick, 0, 30) == ["stalled: 1 client"]
    assert [alarms.at(None, [], second * 1000) for second in (45, 600)] == [[], []]
    assert titles(alarms, sick, 615) == []


def test_a_gateway_that_has_lost_its_destination_and_then_ends() -> None:
    alarms = Alarms()
    lost = ProgramRow(program="http://g:1", name="g", kind="gateway", state="up", lost=("otlp",))
    down = replace(lost, state="connection refused")
    well = replace(lost, lost=())
    played = [(lost, 0), (lost, 30), (down, 45), (down, 60), (down, 75), (down, 300)]
    played += [(lost, 315), (lost, 345), (well, 360), (well, 600)]

    told = [each.title for row, second in played for each in alarms.at([], [], second * 1000, [row])]

    assert told == [
        "gateway g has lost otlp",
        "gateway g: connection refused",
        "gateway g has lost otlp",
        "Over: gateway g: connection refused",
        "Over: gateway g has lost otlp",
    ]
    assert alarms.going_on == {}

"""``odradek clients`` and ``odradek top`` with clients of librdkafka at a real host."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin import AdminClient
from odradek.client.errors import TimedOut
from odradek.testing import RunningHost
from odradek_console.engine.client_entry import State
from odradek_console.terminal.clients import clients
from odradek_console.terminal.top import top
from odradek_console.view import View
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = pytest.mark.timeout(120)
PATIENCE_S = 60


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


@pytest.fixture
def fleet(host: RunningHost) -> Iterator[None]:
    """Three producers, which have pushed."""
    host.subscribe("org.apache.kafka.producer.", interval_ms=300)
    host.topics.create("orders")
    with working_clients(host.bootstrap, "orders", producers=[f"orders-{number}" for number in range(3)]):
        wait_until(lambda: len({push.client_id for push in host.telemetry.pushes}) == 3, "pushes", PATIENCE_S)
        yield


def output(command: click.Command, host: RunningHost, *arguments: str, columns: int = 80) -> Sequence[str]:
    """The lines that a command prints on a terminal of this width."""
    runner = CliRunner(env={"COLUMNS": str(columns), "LINES": "24"})
    result = runner.invoke(command, ["--bootstrap-server", host.bootstrap, *arguments])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.mark.usefixtures("fleet")
def test_the_list_as_json_and_as_a_table(host: RunningHost) -> None:
    rows = [json.loads(line) for line in output(clients, host, "--json", "--filter", "client_id=orders-[01]")]
    narrow = output(clients, host, columns=60)

    assert [row["client_id"] for row in rows] == ["orders-0", "orders-1"]
    assert {row["state"] for row in rows} == {"live"}
    assert {row["software"] for row in rows} == {"confluent-kafka-python"}
    assert max(map(len, narrow)) <= 60
    assert narrow[-1] == "3 clients"


@pytest.mark.usefixtures("fleet")
def test_one_client_in_full(host: RunningHost) -> None:
    lines = output(clients, host, "orders-1")
    (detail,) = [json.loads(line) for line in output(clients, host, "orders-1", "--json")]

    assert "client id    orders-1" in lines
    assert "subscribed   test" in lines
    assert "Not reported by this library:" in lines
    assert {each["metric"] for each in detail["series"]} > {
        "org.apache.kafka.producer.connection.creation.total"
    }
    assert detail["connections"][0]["address"] == "127.0.0.1"


@pytest.mark.usefixtures("fleet")
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_one_picture_of_top(host: RunningHost, columns: int) -> None:
    lines = output(top, host, "--once", columns=columns)

    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("orders-") for line in lines) == 3


def test_a_client_that_is_not_there(host: RunningHost) -> None:
    host.subscribe("*")
    result = CliRunner().invoke(clients, ["--bootstrap-server", host.bootstrap, "nobody"])

    assert result.exit_code == 1
    assert "no client nobody" in result.output


@pytest.mark.ci  # waits for real seconds
def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_console.terminal.options.TOLD_S", 0.1)
    monkeypatch.setattr("odradek_console.terminal.options.CATCH_UP_S", 3.0)

    result = CliRunner().invoke(clients, ["--bootstrap-server", "127.0.0.1:1"])

    assert result.output.count("Trying again: 127.0.0.1:1: connection refused") == 1
    assert isinstance(result.exception, TimedOut)


@pytest.mark.ci  # waits for real seconds
@pytest.mark.usefixtures("fleet")
def test_a_view_follows_and_survives_a_restart_of_the_host(host: RunningHost) -> None:
    with View(lambda: AdminClient(host.bootstrap)) as view:
        wait_until(lambda: len(view.clients()) == 3, "three clients", PATIENCE_S)
        before = {row.client_instance_id: row.pushes for row in view.clients()}
        host.restart()

        def pushed_again() -> bool:
            rows = {row.client_instance_id: row for row in view.clients()}
            return all(rows[each].pushes > pushes for each, pushes in before.items())

        wait_until(pushed_again, "pushes after the restart", PATIENCE_S)
        reading = view.reading()
        assert reading.problem == ""
        assert reading.counts["repeated_records"] == 0
        assert {row.state for row in view.clients()} == {State.LIVE}

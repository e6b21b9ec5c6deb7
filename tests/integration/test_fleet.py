"""``contrib/fleet`` against a host: what it counts is what the host stored."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import warnings
from pathlib import Path

import pytest
from contrib.fleet.__main__ import main
from contrib.fleet.behavior import mixed
from contrib.fleet.fleet import Fleet
from contrib.fleet.lines import recorded_payload
from contrib.fleet.tally import Tally

from odradek.client.address import Address, addresses
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.waiting import until

MIX = {"java": 60.0, "librdkafka": 30.0, "franz-go": 10.0}


def fleet_of(host: ThreadedHost, clients: int, connections: int, *, churn: float = 0.0) -> Fleet:
    kinds = mixed(MIX, clients)
    return Fleet(
        addresses(host.bootstrap),
        kinds,
        connections,
        recorded_payload(list(dict.fromkeys(kinds))),
        settled=True,
        churn=churn,
    )


def counted(fleet: Fleet) -> tuple[Tally, Tally]:
    """The counts until all connections were open, and those since: the first clients push before that."""
    return fleet.opening, fleet.tally


@pytest.mark.parametrize("connections", [4, 30])
def test_the_host_stored_what_the_fleet_counted(tmp_path: Path, connections: int) -> None:
    with running_host(tmp_path, *EVERYTHING) as host:
        fleet = fleet_of(host, 30, connections)
        asyncio.run(fleet.run(1.0, leave=True))
        accounts = host.call(lambda: host.host.telemetry.accounts)

    accepted = sum(each.accepted for each in counted(fleet))
    assert len(fleet.lines) == connections
    assert accepted == accounts.appended
    assert sum(each.pushes for each in counted(fleet)) == accepted + sum(
        each.refused.total() for each in counted(fleet)
    )
    assert fleet.tally.terminated == 30
    assert {(each.unanswered, each.stopped) for each in counted(fleet)} == {(0, 0)}


def test_a_storm_and_churn_lose_no_accepted_push(tmp_path: Path) -> None:
    with running_host(tmp_path, *EVERYTHING) as host:
        fleet = fleet_of(host, 30, 30, churn=1_000_000)
        asyncio.run(through_the_storm(fleet))
        accounts = host.call(lambda: host.host.telemetry.accounts)

    accepted = sum(each.accepted for each in counted(fleet))
    assert fleet.tally.lost >= 30
    assert accepted <= accounts.appended <= accepted + sum(each.unanswered for each in counted(fleet))


async def through_the_storm(fleet: Fleet) -> None:
    """Run until the storm is over, and clients have left and joined."""
    running = asyncio.ensure_future(fleet.run(60, storm_s=0.5))
    await until(lambda: fleet.storm_lasted_s is not None and fleet.tally.terminated and fleet.tally.joined)
    fleet.over = True
    await running


def test_connections_that_wait_for_an_answer_are_closed_at_the_end() -> None:
    kinds = mixed(MIX, 5)
    with socket.create_server(("127.0.0.1", 0)) as silent, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        broker = Address("127.0.0.1", silent.getsockname()[1])
        fleet = Fleet([broker], kinds, 5, recorded_payload(list(dict.fromkeys(kinds))))

        async def cut_short() -> None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.3):
                    await fleet.run(1.0)

        asyncio.run(cut_short())
        gc.collect()

    assert [str(each.message) for each in warned] == []


def test_the_command_prints_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_host(tmp_path, *EVERYTHING) as host:
        fast = ["--bootstrap-servers", host.bootstrap, "--settled", "--seconds", "0.5", "--clients", "12"]
        status = main([*fast, "--connections", "3", "--json"])
        said = capsys.readouterr()

    summary = json.loads(said.out)
    assert status == 0
    assert summary["fleet"] == {"clients": 12, "connections": 4}  # at least one of each library
    assert summary["accepted"] > 0
    assert "12 client instances share 4 connections" in said.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--bootstrap-servers", "nowhere"], "host:port"),
        (["--bootstrap-servers", "127.0.0.1:1", "--mix", "kio=1"], "unknown kind of client 'kio'"),
    ],
)
def test_a_wrong_option_is_named(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err

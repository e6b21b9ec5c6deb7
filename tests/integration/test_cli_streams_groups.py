"""``odradek groups`` with streams groups, against a host."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from support.hosts import ThreadedHost, running_host
from support.streams_requests import join
from support.tools import Tool, command_line
from support.wire_client import WireClient


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """A topic of two partitions, and one member of a streams group that reads it."""
    settings = (
        "group.streams.initial.rebalance.delay.ms=0",
        *("group.streams.session.timeout.ms=3600000", "group.streams.max.session.timeout.ms=3600000"),
    )  # the member sends no second heartbeat, and other tests may run between those of this file
    with running_host(tmp_path_factory.mktemp("groups") / "data", *settings) as started:
        with AdminClient(started.bootstrap, timeout_s=10) as admin:
            admin.create_topics([NewTopic(name="words", partitions=2)])
        address, _, port = started.bootstrap.rpartition(":")
        with WireClient((address, int(port)), "streamer") as client:
            assert not client.send(join(), 1).error_code
        yield started


@pytest.fixture
def tool(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "groups", capsys)


def test_streams_groups_are_listed_by_their_type(tool: Tool) -> None:
    lines = tool("--list", "--type", "streams").out

    assert [line.split() for line in lines if line] == [["GROUP", "TYPE"], ["streamers", "Streams"]]


def test_the_state_of_a_streams_group_is_shown(tool: Tool) -> None:
    lines = tool("--describe", "--group", "streamers", "--state", "--json").out

    (shown,) = map(json.loads, lines)
    assert (shown["state"], shown["assignment_strategy"]) == ("Stable", "sticky")


def test_members_have_the_partitions_of_their_active_tasks(tool: Tool) -> None:
    lines = tool("--describe", "--group", "streamers", "--members", "--json").out

    (member,) = map(json.loads, lines)
    assert (member["consumer_id"], member["client_id"], member["current_epoch"]) == ("m1", "streamer", 2)
    assert member["current_assignment"] == [
        {"topic": "words", "partition": 0},
        {"topic": "words", "partition": 1},
    ]
    assert member["process_id"] == "p"
    assert (
        member["current_tasks"]
        == member["target_tasks"]
        == {"active": {"s": [0, 1]}, "standby": {}, "warmup": {}}
    )


def test_members_are_shown_with_their_tasks(tool: Tool) -> None:
    lines = tool("--describe", "--group", "streamers", "--members").out

    assert [line.split(maxsplit=4) for line in lines if line] == [
        ["GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS"],
        ["streamers", "m1", "p", "streamer", "ACTIVE: s:[0,1];"],
    ]


def test_epochs_and_targets_are_shown_on_demand(tool: Tool) -> None:
    lines = tool("--describe", "--group", "streamers", "--members", "--verbose").out

    heading, row = (line.split(maxsplit=8) for line in lines if line)
    assert dict(zip(heading, row, strict=True)) == {
        "GROUP": "streamers",
        "TARGET-ASSIGNMENT-EPOCH": "2",
        "TOPOLOGY-EPOCH": "1",
        "MEMBER": "m1",
        "MEMBER-PROTOCOL": "streams",
        "MEMBER-EPOCH": "2",
        "PROCESS": "p",
        "CLIENT-ID": "streamer",
        "ASSIGNMENTS": "ACTIVE: s:[0,1]; TARGET-ACTIVE: s:[0,1];",
    }


def test_offsets_are_those_of_what_active_tasks_read(tool: Tool) -> None:
    lines = tool("--describe", "--group", "streamers", "--json").out

    rows = map(json.loads, lines)
    assert [(row["topic"], row["partition"], row["consumer_id"]) for row in rows] == [
        ("words", 0, "m1"),
        ("words", 1, "m1"),
    ]

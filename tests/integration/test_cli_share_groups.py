"""``odradek groups`` with share groups, against a host."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from support.hosts import ThreadedHost, running_host
from support.tools import Tool, command_line
from support.wire_client import WireClient

FAILING = "Error: Executing consumer group command failed due to "


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """A topic of two partitions."""
    settings = ("group.share.assignment.interval.ms=0", "group.share.max.size=2")
    with running_host(tmp_path_factory.mktemp("groups") / "data", *settings) as started:
        with AdminClient(started.bootstrap, timeout_s=10) as admin:
            admin.create_topics([NewTopic(name="orders", partitions=2)])
        yield started


@pytest.fixture
def tool(host: ThreadedHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "groups", capsys)


def beat(host: ThreadedHost, epoch: int, group: str = "sharers") -> int:
    """A heartbeat of the only member; returns its new epoch."""
    address, _, port = host.bootstrap.rpartition(":")
    names = None if epoch else ["orders"]
    request = ShareGroupHeartbeatRequest(
        group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=names
    )
    with WireClient((address, int(port)), "sharer") as client:
        response = client.send(request, 1)
    assert not response.error_code
    return int(response.member_epoch)


def rows(lines: list[str]) -> list[list[str]]:
    """The cells of a table."""
    return [line.split() for line in lines if line]


def test_a_share_group_from_its_first_member_to_its_end(host: ThreadedHost, tool: Tool) -> None:
    beat(host, beat(host, 0))

    assert tool("--list").out == []
    assert rows(tool("--list", "--type", "share").out) == [["GROUP", "TYPE"], ["sharers", "Share"]]
    (shown,) = tool("--describe", "--group", "sharers", "--members", "--json").out
    member = json.loads(shown)
    assert (member["consumer_id"], member["client_id"]) == ("m", "sharer")
    assert len(member["current_assignment"]) == 2
    (shown,) = tool("--describe", "--group", "sharers", "--state", "--json").out
    state = json.loads(shown)
    assert (state["state"], state["assignment_strategy"], state["members"]) == ("Stable", "simple", 1)
    refused = tool("--reset-offsets", "--group", "sharers", "--to-latest", "--all-topics", "--execute")
    assert "stop its members to reset its offsets" in refused.err[-1]

    beat(host, -1)
    moved = ("--to-offset", "0", "--topic", "orders:1", "--execute")
    assert tool("--reset-offsets", "--group", "sharers", *moved).status == 0

    assert rows(tool("--describe", "--group", "sharers").out) == [
        ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"],
        ["sharers", "orders", "0", "-", "-"],
        ["sharers", "orders", "1", "0", "0"],
    ]
    current = tool("--reset-offsets", "--group", "sharers", "--to-current", "--all-topics", "--json").out
    assert [json.loads(line)["new_offset"] for line in current] == [0, 0]
    deleted = tool("--delete-offsets", "--group", "sharers", "--topic", "orders")
    assert rows(deleted.out)[-1] == ["orders", "1", "Successful"]
    assert tool("--describe", "--group", "sharers").out == []
    assert tool("--delete", "--group", "sharers").status == 0
    assert tool("--describe", "--group", "sharers").err[-1].startswith(FAILING)


def test_offsets_of_a_topic_that_the_group_does_not_know_cannot_be_deleted(
    host: ThreadedHost, tool: Tool
) -> None:
    beat(host, 0, "idle")
    beat(host, -1, "idle")
    tool("--delete-offsets", "--group", "idle", "--topic", "orders")

    again = tool("--delete-offsets", "--group", "idle", "--topic", "orders")

    assert again.status == 1
    assert rows(again.out)[-1] == ["orders", "1", "Error:", "UNKNOWN_TOPIC_OR_PARTITION"]

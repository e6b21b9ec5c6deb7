"""``odradek lag`` against a host, over the network."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from odradek.testing import RunningHost
from support.tools import Tool, command_line


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    host = odradek_hosts(telemetry_lag="none")
    host.topics.create("orders")
    host.topics.produce("orders", *[b"v"] * 10)
    return host


@pytest.fixture
def tool(host: RunningHost, capsys: pytest.CaptureFixture[str]) -> Tool:
    return command_line(host.bootstrap, "lag", capsys)


def test_the_worst_comes_first_within_eighty_columns(host: RunningHost, tool: Tool) -> None:
    now_ms = int(time.time() * 1_000)
    host.topics.produce("late", b"v", timestamp_ms=now_ms - 7_501_000)
    host.groups.commit("billing-of-a-very-long-name", "orders", {0: 2})
    host.groups.commit("audit", "orders", {0: 10})
    host.groups.commit("search", "late", {0: 0})

    done = tool("--once")

    assert done.status == 0
    assert [line.split() for line in done.out] == [
        ["GROUP", "TOPIC", "LAG", "BEHIND", "PROGRESS"],
        ["search", "late", "1", "2h", "5m", "-"],
        ["billing-of-a-very-l~", "orders", "8", "0s", "-"],
        ["audit", "orders", "0", "0s", "-"],
    ]
    assert max(map(len, done.out)) <= 80


def test_one_object_for_each_group_and_topic(host: RunningHost, tool: Tool) -> None:
    host.groups.commit("billing", "orders", {0: 2})
    host.groups.commit("audit", "orders", {0: 10})

    (line,) = tool("--once", "--json", "--group", "billing").out
    found = json.loads(line)

    assert (found["group"], found["topic"], found["lag"]) == ("billing", "orders", 8)
    assert found["partitions"][0] | {"lag_seconds": None} == {
        "partition": 0,
        "offset": 2,
        "lag": 8,
        "lag_seconds": None,
        "unstable": 0,
        "lost": 0,
        "ahead": 0,
    }


def test_rounds_follow_until_it_is_interrupted(
    host: RunningHost, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.groups.commit("billing", "orders", {0: 2})
    now_s = [time.monotonic()]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds
        if now_s[0] > first_s + 25:
            raise KeyboardInterrupt

    first_s = now_s[0]
    clock = SimpleNamespace(sleep=sleep, monotonic=lambda: now_s[0])  # of the command, not of other threads
    monkeypatch.setattr("odradek.cli.lag.time", clock)

    done = tool()

    assert done.status == 0
    shown = [line.split()[-1] for line in done.out if line.startswith("billing")]
    assert shown == ["-", "stalled", "stalled"]


def test_a_cluster_that_does_not_answer(host: RunningHost, tool: Tool) -> None:
    host.stop()

    done = tool("--once")

    assert done.status == 1
    assert done.out == []
    assert "connection refused" in done.err[0]


def test_no_group_at_all(tool: Tool) -> None:
    assert tool("--once").out == ["no group has offsets"]

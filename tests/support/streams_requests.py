"""A broker with streams groups, and what one member sends to it."""

from __future__ import annotations

from typing import Any

from odradek.broker.features import STREAMS_VERSION
from odradek.testing.clock import MockClock
from odradek.wire.messages.streams_group_heartbeat import (
    Setting,
    StreamsGroupHeartbeatRequest,
    TopicInfo,
    Topology,
)
from support.broker import BrokerClient, make_broker
from support.streams_groups import AT_ONCE, GROUP, topology


def client(*, on: bool = True, **more: Any) -> BrokerClient:
    """A client of a broker with the topic ``words``."""
    made = BrokerClient(make_broker(groups=AT_ONCE, **more))
    made.broker.topics.create("words", 2, {})
    if not on:
        made.broker.features.finalize(STREAMS_VERSION, 0)
    return made


def join(joined: Topology | None = None, **fields: Any) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        **{
            "group_id": GROUP,
            "member_id": "m1",
            "rebalance_timeout_ms": 1_000,
            "topology": joined or topology("words"),
            "process_id": "p",
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            **fields,
        }
    )


def beat(epoch: int) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(group_id=GROUP, member_id="m1", member_epoch=epoch)


def stateful(**configs: str) -> Topology:
    """A topology with the changelog ``log``."""
    found = topology("words")
    settings = [Setting(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    found.subtopologies[0].state_changelog_topics = [TopicInfo(name="log", topic_configs=settings)]
    return found


def later(asked: BrokerClient, time_ms: int = 1) -> None:
    """Let time pass, and with it the work in the background."""
    clock = asked.broker.clock
    assert isinstance(clock, MockClock)
    clock.advance(time_ms)

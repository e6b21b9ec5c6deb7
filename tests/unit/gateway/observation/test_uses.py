"""Which topics and partitions the clients of a gateway use, from what passes."""

from __future__ import annotations

import pytest

from odradek.gateway.observation.settings import Observe
from odradek.gateway.produce_beginning import first_topic
from odradek.lag.readers import CLOSED_MS
from odradek.telemetry.topology import Topology
from odradek.waiting.steps import run_steps
from odradek.wire.codec import encode
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from support.batches import batch_of
from support.data_requests import fetch_request, produce_request
from support.observed import Stage

BATCH = batch_of(b"v")
ID = b"i" * 16
NAMES = {ID: "orders"}


class Scene:
    """A gateway that observes nothing but who uses what."""

    def __init__(self) -> None:
        self.topology = Topology(100, NAMES.get)
        self.stage = Stage(Observe.NONE, topology=self.topology)
        self.observation = self.stage.observation

    def shown(self) -> set[tuple[str, str, str]]:
        run_steps(self.observation.look_at_uses())
        return {(row["client_id"], row["topic"], row["direction"]) for row in self.topology.rows()}


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_the_topics_of_producers(version: int) -> None:
    scene = Scene()
    pair = scene.stage.pair("app")
    several = produce_request("orders", BATCH, topic_id=ID)
    several.topic_data.append(TopicProduceData(name="more", topic_id=b"m" * 16))
    pair.send(produce_request("orders", BATCH, topic_id=ID), version)
    assert scene.shown() == {("app", "orders", "write")}
    pair.send(several, version)
    expected = {("app", "orders", "write")}
    if version < 13:
        expected.add(("app", "more", "write"))
    assert scene.shown() == expected
    assert len(scene.topology.unnamed) == (version >= 13)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_the_first_topic_of_a_request_in_pieces(version: int) -> None:
    scene = Scene()
    pair = scene.stage.pair("app")
    pair.head_bytes = 60
    pair.send(produce_request("orders", batch_of(b"v" * 200), topic_id=ID), version)

    assert scene.shown() == {("app", "orders", "write")}


@pytest.mark.parametrize("version", [3, 9, 13])
def test_a_topic_that_is_cut_is_none(version: int) -> None:
    body = encode(ProduceRequest(topic_data=[TopicProduceData(name="orders", topic_id=ID)]), version)
    acks_end = 4 if version < 9 else 3
    whole = next(size for size in range(len(body)) if first_topic(body[:size], acks_end, version))
    assert first_topic(body[:whole], acks_end, version) == [ID if version >= 13 else b"orders"]
    assert not any(first_topic(body[:size], acks_end, version) for size in range(acks_end, whole))


def test_the_topics_of_consumers_and_the_end_of_a_connection() -> None:
    scene = Scene()
    by_id, by_name = scene.stage.pair("new"), scene.stage.pair("old")
    by_id.send(fetch_request("", topic_id=ID, session_epoch=0), 18)
    by_name.send(fetch_request("bills"), 11)
    by_name.close()
    assert scene.shown() == {("new", "orders", "read"), ("old", "bills", "read")}

    scene.stage.clock.advance(5_000)
    by_id.send(FetchRequest(session_epoch=1), 18)
    scene.shown()
    last_ms = {row["client_id"]: row["last_ms"] for row in scene.topology.rows()}
    assert last_ms["new"] - last_ms["old"] == 5_000


def test_what_is_not_observed_is_not_written() -> None:
    scene = Scene()
    pair = scene.stage.pair("app")
    pair.exchange(produce_request("orders", BATCH), ProduceResponse(), 9)

    assert scene.stage.ended() == []


def test_the_readings_of_a_member_of_a_group_outlive_it_for_a_minute() -> None:
    stage = Stage(follows_fetches=True)
    coordinator, fetcher = stage.pair("app"), stage.pair("app", node_id=2)
    coordinator.exchange(JoinGroupRequest(group_id="g", member_id="m"), JoinGroupResponse(member_id="m"), 5)
    coordinator.exchange(SyncGroupRequest(group_id="g", member_id="m"), SyncGroupResponse(), 3)
    fetcher.send(fetch_request("orders", 7), 11)

    ((reader, reading),) = stage.observation.readings()
    assert (reader.client_id, reader.group, reader.observer) == ("app", "g", "gateway-1")
    assert reading.offsets == {("orders", 0): 7}
    coordinator.close()
    fetcher.close()
    stage.clock.advance(CLOSED_MS)
    ((left, kept),) = stage.observation.readings()
    assert left == reader
    assert kept.closed_ms is not None
    stage.clock.advance(1)
    assert list(stage.observation.readings()) == []


def test_nobody_follows_what_nobody_wants_to_know() -> None:
    stage = Stage()
    pair = stage.pair("app")
    pair.send(fetch_request("orders"), 11)
    pair.send(produce_request("orders", BATCH), 9)
    pair.close()

    assert list(stage.observation.readings()) == []

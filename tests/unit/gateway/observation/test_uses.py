"""Which topics and partitions the clients of a gateway use, from what passes."""

from __future__ import annotations

import pytest

from odradek.gateway.observation.names import OWN
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
    assert first_topic(body[:whole], acks_end, version) == (ID if version >= 13 else b"orders", True)
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


def test_connections_that_have_ended_leave_nothing() -> None:
    """Also if nobody asks for the readings."""
    scene = Scene()
    watch = scene.observation.fetch_watch
    assert watch is not None
    for _ in range(5):
        pair = scene.stage.pair("app")
        pair.send(fetch_request("orders"), 11)
        pair.close()
        scene.stage.clock.advance(CLOSED_MS // 2)
        assert len(watch.closed) <= 3


def topics_of(stage: Stage) -> dict[str, dict[str, float]]:
    """The sums by topic of the next windows, by metric."""
    points, start = stage.ended(), OWN + "topic."
    found: dict[str, dict[str, float]] = {}
    for point in points:
        if point.metric.startswith(start):
            sums = found.setdefault(point.metric.removeprefix(start), {})
            sums[point.attributes["topic"]] = sums.get(point.attributes["topic"], 0) + point.value
    return found


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("head_bytes", [60, 1 << 20])
def test_what_is_written_by_topic(version: int, head_bytes: int) -> None:
    stage = Stage(name_of=NAMES.get)
    pair = stage.pair("app")
    pair.head_bytes = head_bytes
    batches = [batch_of(b"v" * 200, b"v"), batch_of(b"w" * 200)]
    pair.exchange(produce_request("orders", *batches, topic_id=ID), ProduceResponse(), version)

    size_bytes = sum(map(len, batches))
    assert topics_of(stage) == {
        "produce.records": {"orders": 3},
        "produce.batches": {"orders": 2},
        "produce.bytes": {"orders": size_bytes},
    }
    assert topics_of(stage) == {}


def test_topics_whose_names_are_not_known_and_topics_beyond_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odradek.gateway.observation.client_account.MOST_TOPICS", 2)
    stage = Stage(name_of=NAMES.get)
    pair = stage.pair("app")
    pair.send(produce_request("", BATCH, topic_id=b"u" * 16), 13)
    stage.observation.write(next(iter(stage.observation.clients.values())))
    for topic in ("a", "b", "c"):
        pair.send(produce_request(topic, BATCH), 9)

    assert topics_of(stage)["produce.records"] == {"a": 1, "other": 2}


def test_what_is_read_by_topic_is_by_how_much_positions_grow() -> None:
    stage = Stage(follows_fetches=True, name_of=NAMES.get)
    pair = stage.pair("app")
    for offset in (100, 110, 105, 120):
        pair.send(fetch_request("orders", offset, offset, topic_id=ID), 18)

    assert topics_of(stage) == {"fetch.records": {"orders": 40}}


def test_nobody_follows_what_nobody_wants_to_know() -> None:
    stage = Stage()
    pair = stage.pair("app")
    pair.send(fetch_request("orders"), 11)
    pair.send(produce_request("orders", BATCH), 9)
    pair.close()

    assert list(stage.observation.readings()) == []

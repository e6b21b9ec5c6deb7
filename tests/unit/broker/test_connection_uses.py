"""Which topics the clients of a host use: only those that exist, and that they may use."""

from __future__ import annotations

from typing import Any

from odradek.broker.connection_uses import ConnectionUses
from odradek.telemetry.topology import Topology
from odradek.waiting.steps import run_steps
from odradek.wire.messages.fetch import FetchRequest, FetchResponse
from support.acls import standard_authorizer
from support.batches import batch_of
from support.broker import make_broker
from support.data_requests import fetch_request, produce_request
from support.group_client import GroupClient


class Scene:
    """A host with two topics and a client."""

    def __init__(self, **broker: Any) -> None:
        self.client = GroupClient(broker=make_broker(**broker))
        made = self.client.broker
        for name in ("orders", "bills"):
            made.topics.create(name, 1, {})
        names: dict[bytes, str] = {}
        self.topology = Topology(100, names.get)
        made.uses = self.uses = ConnectionUses(self.topology, made.topics, self.client.clock)
        self.started_ms = self.client.clock.now_ms()

    def topic_id(self, name: str) -> bytes:
        return self.client.broker.topics.by_name[name].id

    def write(self, topic: str) -> None:
        self.client.send(produce_request(topic, batch_of(b"v")), 12)

    def read(self, topic: str, **fields: Any) -> FetchResponse:
        answer: FetchResponse = self.client.send(fetch_request(topic, **fields), 12)
        return answer

    def pass_s(self, seconds: int) -> None:
        self.client.clock.advance(seconds * 1_000)

    def shown(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The first and the last use by topic and direction, in seconds since the start."""
        run_steps(self.uses.look())
        return {
            (row["topic"], row["direction"]): (
                (row["first_ms"] - self.started_ms) // 1_000,
                (row["last_ms"] - self.started_ms) // 1_000,
            )
            for row in self.topology.rows()
        }


def test_what_a_client_writes_and_reads() -> None:
    scene = Scene()
    scene.write("orders")
    assert scene.shown() == {("orders", "write"): (0, 0)}
    scene.pass_s(5)
    scene.write("orders")
    scene.read("bills")
    assert scene.shown() == {("orders", "write"): (0, 5), ("bills", "read"): (5, 5)}
    scene.pass_s(5)
    assert scene.shown() == {("orders", "write"): (0, 5), ("bills", "read"): (5, 5)}


def test_topics_by_id_and_topics_that_do_not_exist() -> None:
    scene = Scene()
    scene.client.send(fetch_request("", topic_id=scene.topic_id("orders")), 18)
    scene.client.send(fetch_request("", topic_id=b"9" * 16), 18)
    scene.read("missing")
    scene.write("missing")

    assert set(scene.shown()) == {("orders", "read")}


def test_a_session_goes_on_reading_what_it_does_not_name() -> None:
    scene = Scene()
    opened = scene.read("orders", session_epoch=0)
    scene.shown()
    scene.pass_s(7)
    scene.client.send(FetchRequest(session_id=opened.session_id, session_epoch=1), 12)

    assert scene.shown() == {("orders", "read"): (0, 7)}


def test_the_last_use_is_known_after_the_end_of_the_connection() -> None:
    scene = Scene()
    scene.write("orders")
    scene.uses.connection_closed(scene.client.connection.connection_id)

    assert scene.uses.connections == {}
    assert set(scene.shown()) == {("orders", "write")}


def test_what_a_client_may_not_use_it_does_not_use() -> None:
    scene = Scene(authorizer=standard_authorizer(super_users=()))
    scene.write("orders")
    scene.read("orders")

    assert scene.shown() == {}

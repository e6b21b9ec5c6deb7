"""Who uses which topic: first and last use, bounds, and names that are learned later."""

from __future__ import annotations

import pytest

from odradek.telemetry import topology as room
from odradek.telemetry.topology import UNNAMED_MS, Client, Topology, merged

ID = b"\1" * 16
NO_NAMES: dict[bytes, str] = {}
APP = Client("app", "10.0.0.1", "User:a", "librdkafka", "2.16.0")


def uses(topology: Topology) -> list[tuple[str, str, int, int]]:
    return [(row["topic"], row["direction"], row["first_ms"], row["last_ms"]) for row in topology.rows()]


def test_a_use_has_its_first_and_its_last_time() -> None:
    topology = Topology(10, NO_NAMES.get)
    topology.note(APP, "orders", writes=True, now_ms=100)
    topology.note(APP, "orders", writes=False, now_ms=200)
    topology.note(APP, "orders", writes=True, now_ms=300)

    assert uses(topology) == [("orders", "write", 100, 300), ("orders", "read", 200, 200)]
    assert next(topology.rows()) == {
        "client_id": "app",
        "address": "10.0.0.1",
        "principal": "User:a",
        "library": "librdkafka",
        "library_version": "2.16.0",
        "topic": "orders",
        "direction": "write",
        "first_ms": 100,
        "last_ms": 300,
    }


def test_the_oldest_use_is_forgotten_and_counted() -> None:
    topology = Topology(2, NO_NAMES.get)
    for number, topic in enumerate(("a", "b", "a", "c")):
        topology.note(APP, topic, writes=True, now_ms=number)

    assert [topic for topic, *_ in uses(topology)] == ["c", "a"]
    rows = {row.name: row.value for row in topology.metric_rows()}
    assert rows == {"odradek.topology.uses": 2, "odradek.topology.dropped": 1}


def test_a_topic_whose_name_is_not_known_yet_gets_it_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_UNNAMED", 1)
    names: dict[bytes, str] = {}
    topology = Topology(10, names.get)
    topology.note(APP, ID, writes=True, now_ms=100)
    topology.note(APP, b"2" * 16, writes=True, now_ms=100)
    topology.name_topics(200)
    assert uses(topology) == []

    names |= {ID: "orders", b"2" * 16: "more"}
    topology.name_topics(300)
    assert uses(topology) == [("orders", "write", 100, 100)]
    assert topology.unnamed == {}


def test_a_topic_that_nobody_names_is_forgotten() -> None:
    topology = Topology(10, NO_NAMES.get)
    topology.note(APP, ID, writes=True, now_ms=100)
    topology.name_topics(100 + UNNAMED_MS)
    assert len(topology.unnamed) == 1
    topology.name_topics(101 + UNNAMED_MS)
    assert topology.unnamed == {}


def test_the_uses_of_several_programs_are_one_each() -> None:
    first, second = Topology(10, NO_NAMES.get), Topology(10, NO_NAMES.get)
    first.note(APP, "orders", writes=True, now_ms=100)
    second.note(APP, "orders", writes=True, now_ms=50)
    second.note(APP, "orders", writes=True, now_ms=70)
    second.note(APP._replace(address="10.0.0.2"), "orders", writes=True, now_ms=200)

    found = merged([*first.rows(), *second.rows()])

    assert [(row["address"], row["first_ms"], row["last_ms"]) for row in found] == [
        ("10.0.0.2", 200, 200),
        ("10.0.0.1", 50, 100),
    ]

"""The objects of a broker: import-linter holds the floors for modules, these tests hold them for objects."""

from __future__ import annotations

import pytest

from odradek.broker.broker import Broker
from support.broker import make_broker
from support.object_graph import called, circles, everything, room

UPWARD = {
    "ChangeableTopics.listeners": "groups follow the topics that they read",
    "Deliveries.bury": "what a share group gives up is written to a topic",
    "StateLimit.count": "a limit counts what its owner has",
    "TimerTask.action": "a timer runs what its owner has scheduled",
}
"""The attributes through which an object calls an object of another room that holds it, and why."""


@pytest.fixture
def broker() -> Broker:
    broker = make_broker()
    broker.topics.create("t", 2, {})
    return broker


def test_the_rooms_hold_each_other_in_one_direction(broker: Broker) -> None:
    assert len(list(everything(broker))) > 50
    assert circles(broker) == set()


def test_calls_go_up_only_where_the_composition_says_so(broker: Broker) -> None:
    upward = {
        name
        for owner in everything(broker)
        for name, target in called(owner)
        if room(target) != room(owner) and any(each is owner for each in everything(target))
    }

    assert upward == UPWARD.keys()


def test_a_circle_between_rooms_is_found(broker: Broker) -> None:
    broker.groups.config = broker  # type: ignore[assignment]

    assert circles(broker) == {"Broker.groups", "GroupCoordinator.config"}


def test_a_broker_continues_where_its_stores_ended(broker: Broker) -> None:
    broker.finalize({"group.version": 0})
    store = broker.metadata

    again = make_broker(metadata=store)

    assert again.cluster_id == broker.cluster_id
    assert again.features.level("group.version") == 0
    assert again.features.epoch == broker.features.epoch

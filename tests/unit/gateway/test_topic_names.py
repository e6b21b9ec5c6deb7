"""Names of topics by id: the cluster is asked for those that are not known, once for each."""

from __future__ import annotations

from odradek.gateway.topic_names import MOST_UNKNOWN, TopicNames


def test_an_unknown_id_is_asked_for_soon_and_once() -> None:
    asked: list[None] = []
    names = TopicNames(lambda: asked.append(None))
    assert names.name_of(b"1") is None
    assert names.name_of(b"1") is None
    assert names.name_of(b"2") is None
    assert names.wanted() == [b"1", b"2"]
    assert len(asked) == 2

    names.learn({b"1": "orders"})
    assert names.name_of(b"1") == "orders"
    assert names.wanted() == [b"2"]
    assert len(asked) == 2


def test_the_ids_that_are_asked_for_are_bounded() -> None:
    names = TopicNames(lambda: None)
    for number in range(MOST_UNKNOWN + 5):
        names.name_of(number.to_bytes(16))

    assert len(names.wanted()) == MOST_UNKNOWN
    assert names.wanted()[0] == (5).to_bytes(16)

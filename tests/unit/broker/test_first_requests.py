"""The first request of a version compiles its codecs in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.broker.dispatch import routes
from odradek.wire.errors import WireError
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from support.broker import BrokerClient, make_broker

VERSION = 5
NAMES = ["reader", "writer"]
CODECS = [(name, VERSION) for name in NAMES]


@pytest.fixture
def client() -> BrokerClient:
    return BrokerClient(make_broker())


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The codecs that requests have asked for, each with its version."""
    seen: list[tuple[str, int]] = []

    def watched(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
        def found(cls: type, version: int) -> Any:
            seen.append((name, version))
            return find(cls, version)

        return found

    for name in NAMES:
        monkeypatch.setattr(routes, name, watched(name, getattr(routes, name)))
    return seen


def frame(client: BrokerClient, version: int = VERSION) -> bytes:
    return client.frame(
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name="topic")], topic_names=["topic"], timeout_ms=10_000
        ),
        version,
    )


def test_the_first_request_is_answered_at_once_and_the_second_finds_its_codecs(
    client: BrokerClient, compiled: list[tuple[str, int]]
) -> None:
    first = client.dispatcher.answer(frame(client), 0, client.connection)
    at_first = list(compiled)
    second = client.dispatcher.answer(frame(client), 0, client.connection)

    assert isinstance(first, bytes)
    assert second == first
    assert (at_first, compiled) == (CODECS, CODECS)


def test_each_version_has_codecs_of_its_own(client: BrokerClient, compiled: list[tuple[str, int]]) -> None:
    for version in (VERSION, VERSION + 1):
        client.dispatcher.answer(frame(client, version), 0, client.connection)

    assert compiled == [(name, version) for version in (VERSION, VERSION + 1) for name in NAMES]


def test_bytes_that_make_no_sense_end_the_connection_and_leave_the_codecs(
    client: BrokerClient, compiled: list[tuple[str, int]]
) -> None:
    with pytest.raises(WireError):
        client.dispatcher.answer(frame(client)[:-9], 0, client.connection)

    client.dispatcher.answer(frame(client), 0, client.connection)

    assert compiled == CODECS

"""Requests are freed early: none leaves a reference cycle, which only a full collection would free minutes
later. Large ones are freed in pieces.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from odradek.bounds.large_list import MANY_ELEMENTS
from odradek.broker.dispatch.routes import CloseConnection, Routes
from odradek.waiting.deferred import Deferred
from odradek.waiting.step_runner import CHECK_MS
from odradek.wire.errors import WireError
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from random_messages import MessageMaker
from support.broker import BrokerClient
from support.left_behind import collected

ROUNDS = 3
APIS = Routes()


def random_frames(api_key: int, client: BrokerClient) -> Iterator[bytes]:
    """Well-formed requests of random versions with random contents."""
    route = APIS[api_key]
    for seed in range(ROUNDS):
        source = random.Random(seed)
        version = source.randint(route.versions.first, route.versions.last)
        yield client.frame(MessageMaker(source).message(route.request, version), version)


def exchange(client: BrokerClient, frame: bytes) -> None:
    """Have a request answered, in steps if it takes them; leave if it waits for something else."""
    with suppress(WireError, CloseConnection):
        answer = client.dispatcher.answer(frame, 0, client.connection)
        if isinstance(answer, Deferred):
            answer.when_done(lambda _: None)
            client.broker.clock.advance(0)  # type: ignore[attr-defined]
            answer.lost()


def test_requests_are_freed_with_their_answers() -> None:
    clients = [BrokerClient() for _ in APIS]
    exchanges = [
        (client, frame)
        for client, api_key in zip(clients, APIS, strict=True)
        for frame in random_frames(api_key, client)
    ]
    for client, frame in exchanges:  # compiles its codec
        exchange(client, frame)

    with collected() as garbage:
        for client, frame in exchanges:
            exchange(client, frame)

    left = Counter(type(each).__name__ for each in garbage if type(each).__module__.startswith("odradek"))
    assert left == {}


def test_the_elements_of_a_large_request_are_freed_in_later_turns() -> None:
    client = BrokerClient()
    topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(MANY_ELEMENTS + 1)]

    client.send(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
    discarded = [len(elements) for elements in client.broker.steps.discarded]
    client.broker.clock.advance(CHECK_MS)  # type: ignore[attr-defined]

    assert discarded == [MANY_ELEMENTS + 1]
    assert not client.broker.steps.discarded

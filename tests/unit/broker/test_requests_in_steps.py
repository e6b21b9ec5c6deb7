"""Handlers that are generators: their work is spread over turns, and the answer is the same."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Generator
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import CloseConnection, Routes
from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from random_messages import MessageMaker
from support.broker import BrokerClient, make_broker
from support.offenders import offenders
from support.ticking_clock import TickingClock

KEY = InitProducerIdRequest.API_KEY
"""The API that the handlers below serve."""
Work = Generator[None, None, InitProducerIdResponse]


def client_with(handler: Any, *, droppable: bool = False) -> tuple[BrokerClient, TickingClock]:
    clock = TickingClock()
    client = BrokerClient(make_broker(clock=clock))
    routes = dict(Routes())

    def begin(request: Any, context: RequestContext, broker: Broker) -> Any:
        return broker.steps.answer(handler(request, context, broker), droppable=droppable)

    routes[KEY] = dataclasses.replace(routes[KEY], handler=begin)
    client.dispatcher.routes = routes
    return client, clock


def slow(request: InitProducerIdRequest, _context: RequestContext, _broker: Broker) -> Work:
    """Take as many steps as the request's timeout."""
    for _ in range(request.transaction_timeout_ms):
        yield
    return InitProducerIdResponse(producer_id=request.transaction_timeout_ms)


def test_a_short_request_is_answered_in_its_turn() -> None:
    client, _ = client_with(slow)

    assert client.send(InitProducerIdRequest(transaction_timeout_ms=5), 4).producer_id == 5
    assert client.broker.steps.deferred == 0


def test_a_long_request_is_answered_in_a_later_turn() -> None:
    client, clock = client_with(slow)
    answer = client.defer(InitProducerIdRequest(transaction_timeout_ms=50), 4)
    assert answer() is None

    clock.advance(0)

    assert answer().producer_id == 50
    assert client.broker.steps.deferred == 1


@pytest.mark.parametrize("steps", [5, 50])
def test_a_request_may_be_refused_at_any_step(steps: int) -> None:
    def refusing(request: InitProducerIdRequest, context: RequestContext, broker: Broker) -> Work:
        yield from slow(request, context, broker)
        raise ApiError(ErrorCode.POLICY_VIOLATION)

    client, clock = client_with(refusing)
    answer = client.defer(InitProducerIdRequest(transaction_timeout_ms=steps), 4)
    clock.advance(0)

    assert answer().error_code == ErrorCode.POLICY_VIOLATION
    assert client.dispatcher.unexpected_errors == 0


def test_a_request_may_close_the_connection_late() -> None:
    def closing(request: InitProducerIdRequest, context: RequestContext, broker: Broker) -> Work:
        yield from slow(request, context, broker)
        raise CloseConnection("no answer possible")

    client, clock = client_with(closing)
    answer = client.defer(InitProducerIdRequest(transaction_timeout_ms=50), 4)
    clock.advance(0)

    with pytest.raises(EOFError):
        answer()
    assert client.dispatcher.unexpected_errors == 0


def test_the_time_of_all_steps_is_charged() -> None:
    client, clock = client_with(slow)
    quotas = client.broker.quotas
    quotas.apply(ClientQuotaEntity(client_id=DEFAULT), {"request_percentage": 0.03})
    # the first millisecond alone is 0.01 % of ten windows of a second, all five are 0.05 %
    answer = client.defer(InitProducerIdRequest(transaction_timeout_ms=50), 4)
    clock.advance(0)

    answer()
    assert client.throttled is not None


@pytest.mark.parametrize(("droppable", "steps"), [(False, 50), (True, 10)])
def test_only_droppable_work_ends_with_its_connection(droppable: bool, steps: int) -> None:
    seen: list[int] = []

    def counting(_request: object, _context: RequestContext, _broker: Broker) -> Work:
        for number in range(50):
            seen.append(number)
            yield
        return InitProducerIdResponse()

    client, clock = client_with(counting, droppable=droppable)
    answer = client.dispatcher.respond(
        client.dispatcher.routes[KEY].at(4),
        InitProducerIdRequest(),
        None,  # type: ignore[arg-type]
    )
    assert isinstance(answer, Deferred)

    answer.lost()
    clock.advance(0)

    assert len(seen) == steps


STEPPED = [
    (key, version)
    for key, route in sorted(Routes().items())
    for version in range(route.versions.first, route.versions.last + 1)
]


def may_take_more_than_a_turn(api_key: int, version: int) -> None:
    clock = TickingClock(tick_ns=10_000_000)
    client = BrokerClient(make_broker(clock=clock))
    route = client.dispatcher.routes[api_key]
    for seed in range(3):
        request = MessageMaker(random.Random(seed)).message(route.request, version)
        with contextlib.suppress(EOFError):
            client.defer(request, version)
            while clock.timer.run_due(clock.monotonic_ms(), 1):
                pass

    assert client.dispatcher.unexpected_errors == 0


def test_every_version_of_every_request_may_take_more_than_a_turn() -> None:
    assert offenders(may_take_more_than_a_turn, STEPPED) == {}

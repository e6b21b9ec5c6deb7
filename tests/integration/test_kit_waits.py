"""Waits in a coroutine: awaited, they leave the loop free; not awaited, they say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import odradek.testing
from conformance.telemetry_broker import otlp
from odradek.testing import NothingCame, RunningHost
from support.wire_client import WireClient


def push_later(host: RunningHost, *metrics: str) -> asyncio.TimerHandle:
    """Push from a callback of the running loop, which a blocking wait would hold up."""

    def push() -> None:
        with WireClient(host.address, "me") as client:
            client.introduce()
            client.push(otlp(*metrics))

    return asyncio.get_running_loop().call_later(0.01, push)


def test_an_awaited_wait_leaves_the_loop_to_the_client(odradek_host: RunningHost) -> None:
    fault = odradek_host.fault("PushTelemetry", throttle_ms=1)

    async def use() -> list[object]:
        push_later(odradek_host, "org.x")
        (point,) = await odradek_host.telemetry.wait_for("org.x", client_id="me")
        push = await odradek_host.telemetry.wait_for_push(client_id="me")
        (request,) = await odradek_host.requests.wait_for("PushTelemetry")
        return [point.metric, push.metrics, request.api, await fault.wait()]

    assert asyncio.run(use()) == ["org.x", ["org.x"], "PushTelemetry", fault]


def test_waits_can_be_gathered_and_made_tasks(odradek_host: RunningHost) -> None:
    async def use() -> list[list[str]]:
        push_later(odradek_host, "org.x", "org.y")
        wait_for = odradek_host.telemetry.wait_for
        first = asyncio.ensure_future(wait_for("org.x"))
        second, third = await asyncio.gather(wait_for("org.y"), asyncio.wait_for(wait_for("org.*"), 5))
        return [[point.metric for point in found] for found in (await first, second, third)]

    assert asyncio.run(use()) == [["org.x"], ["org.y"], ["org.x", "org.y"]]


def test_an_awaited_wait_explains_what_came_instead(odradek_host: RunningHost) -> None:
    async def use() -> None:
        await odradek_host.telemetry.wait_for("org.x", timeout_s=0.01)

    with pytest.raises(
        NothingCame, match=r"no data point of metric org\.x of client .* within 0\.01 s\nsubs"
    ):
        asyncio.run(use())


def test_a_cancelled_wait_ends_at_once(odradek_host: RunningHost) -> None:
    async def use() -> None:
        async with asyncio.timeout(0.01):
            await odradek_host.telemetry.wait_for("org.x", timeout_s=60)

    with pytest.raises(TimeoutError):
        asyncio.run(use())

    assert odradek_host.arrivals.wakers == set()


@pytest.mark.parametrize(
    "misuse",
    [
        lambda found: found[0],
        lambda found: len(found),
        lambda found: [point.value for point in found],
        lambda found: found.metrics,
        lambda found: found == [],
        lambda found: not found,
    ],
    ids=["index", "length", "loop", "attribute", "comparison", "truth"],
)
def test_the_result_of_a_wait_that_was_not_awaited_raises_at_once(
    odradek_host: RunningHost, misuse: Callable[[Any], object]
) -> None:
    async def use() -> None:
        misuse(odradek_host.telemetry.wait_for("org.x", timeout_s=60))

    with pytest.raises(
        RuntimeError, match=r"wait for a data point of metric org\.x .* was not awaited.*`await`"
    ):
        asyncio.run(use())


def forgets(host: RunningHost) -> Coroutine[Any, Any, None]:
    async def use() -> None:
        host.telemetry.wait_for("org.x")

    return use()


def test_a_wait_that_was_forgotten_warns_and_fails_the_test() -> None:
    with (
        pytest.raises(RuntimeError, match=r"not awaited: the wait for a data point of metric org\.x"),
        odradek.testing.host() as host,
        pytest.warns(RuntimeWarning, match=r"was not awaited: an event loop runs in this thread") as warned,
    ):
        asyncio.run(forgets(host))

    assert [warning.filename for warning in warned] == [__file__]


def test_a_function_may_await_what_it_already_has(odradek_host: RunningHost) -> None:
    with WireClient(odradek_host.address, "me") as client:
        client.introduce()
        client.push(otlp("org.x"))
    push = odradek_host.telemetry.wait_for_push()

    async def use() -> object:
        return await push

    assert asyncio.run(use()) is push

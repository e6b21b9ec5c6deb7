"""Forwarders of the OTLP plugin, over HTTP or gRPC, to the endpoints of its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from odradek.plugin import PluginConfig, Reject, Retry
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_table import read_settings

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Kit, Sink


def forwarder_of(protocol: str, endpoint: str, **table: object) -> OtlpForwarder:
    values = {name.replace("__", "."): value for name, value in table.items()}
    config = PluginConfig("plugins.otlp", values | {"endpoint": endpoint, "protocol": protocol})
    settings = read_settings(config, {})
    assert settings is not None
    return OtlpForwarder(settings, user_agent="odradek-otlp/test")


def with_forwarder(
    protocol: str,
    kit: Kit,
    work: Callable[[OtlpForwarder, Sink], Awaitable[None]],
    *script: object,
    path: str = "",
    **table: object,
) -> Sink:
    """Run a coroutine with an endpoint and a started forwarder, and close both."""

    async def run() -> Sink:
        async with (kit.grpc if protocol == "grpc" else kit.http)(*script) as sink:
            forwarder = forwarder_of(protocol, f"http://127.0.0.1:{sink.port}{path}", **table)
            await forwarder.start()
            try:
                await work(forwarder, sink)
            finally:
                await forwarder.close()
        return sink

    return asyncio.run(run())


def refused(protocol: str, kit: Kit, answer: object, **table: Any) -> Retry | Reject:
    """The exception of `deliver` after this answer."""
    caught: list[Retry | Reject] = []

    async def deliver(forwarder: OtlpForwarder, _: Sink) -> None:
        with pytest.raises((Retry, Reject)) as raised:
            await forwarder.deliver([kit.record("orders", "a")])
        assert isinstance(raised.value, Retry | Reject)
        caught.append(raised.value)

    with_forwarder(protocol, kit, deliver, answer, **table)
    return caught[0]

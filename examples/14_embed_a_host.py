"""A host inside a program: it runs on the program's own event loop, and tells it about each push.

Run it: ``python examples/14_embed_a_host.py`` (needs ``odradek[demo]``). Takes seconds.
"""

from __future__ import annotations

import asyncio
import tempfile

from confluent_kafka import Producer

import odradek
from odradek.plugin import ClientTelemetryPayload, PluginConfig, RequestContext, hookimpl


class PushesPlugin:
    """Puts the ids of clients that push into a queue of the program, which shares the loop with the host."""

    def __init__(self) -> None:
        self.clients: asyncio.Queue[str | None] = asyncio.Queue()

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> PushesPlugin:
        return self

    def client_receiver(self) -> PushesPlugin:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.clients.put_nowait(context.client_id)


async def main(folder: str) -> None:
    plugin = PushesPlugin()
    config = {
        "data.dir": folder,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "subscriptions": {"all": {"metrics": "*", "interval.ms": 500}},
    }
    async with odradek.run(config, plugins=[plugin]) as host:
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 3})
        print("a push of", await asyncio.wait_for(plugin.clients.get(), 20))
        await asyncio.to_thread(producer.close)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))

"""A custom plugin: an enricher that adds the label ``team``, taken from the prefix of the client id.

Run it: ``python examples/02_enrich_with_team.py`` (needs ``odradek[all]``). Takes seconds.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    team = "my_package"
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Mapping

from confluent_kafka import Producer
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import ClientTelemetryPayload, PluginConfig, RequestContext, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host


class TeamEnricher:
    """``payments-invoicer-3`` belongs to the team ``payments``."""

    def __init__(self, separator: str, unknown: str) -> None:
        self.separator = separator
        self.unknown = unknown

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        team, separator, _ = (context.client_id or "").partition(self.separator)
        return {"team": team if separator else self.unknown}


class TeamPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> TeamEnricher:
        """Read ``[plugins.team]``. The host does not start if the table has an unread key."""
        return TeamEnricher(config.text("separator") or "-", config.text("unknown") or "nobody")


class LabelsSeen:
    """A receiver that remembers the labels of each client."""

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.by_client: dict[str, dict[str, str]] = {}
        self.complete = asyncio.Event()

    def client_receiver(self) -> LabelsSeen:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        for resource_metrics in MetricsData.FromString(payload.data).resource_metrics:
            labels = {item.key: item.value.string_value for item in resource_metrics.resource.attributes}
            self.by_client[context.client_id or ""] = labels
        if len(self.by_client) == self.clients:
            self.complete.set()


def produce(bootstrap: str, client_id: str, done: threading.Event) -> None:
    """Run an unmodified client, which has no code for teams."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id})
    while not done.wait(0.1):
        producer.produce("greetings", value=b"hello")
        producer.poll(0)
    producer.flush(5)


async def main(data_dir: str) -> None:
    plugins = load_plugins()
    plugins.add("team", TeamPlugin(), distribution="example", version="1.0")
    config = load_config(
        overrides=[
            f"data.dir={data_dir}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "subscriptions.everything.metrics=*",
            "subscriptions.everything.interval.ms=1000",
            "plugins.team.unknown=platform",
        ]
    )
    client_ids = ("payments-invoicer-3", "search-indexer", "cron")
    host, seen, done = Host(config, plugins=plugins), LabelsSeen(len(client_ids)), threading.Event()
    host.receivers.register("labels-seen", seen)
    await host.start()
    bootstrap = f"127.0.0.1:{host.listeners[0].bound_port}"
    clients = [asyncio.to_thread(produce, bootstrap, client_id, done) for client_id in client_ids]
    running = asyncio.gather(*clients)
    try:
        await asyncio.wait_for(seen.complete.wait(), 20)
    finally:
        done.set()
        await running
        await host.stop()
    for client_id in client_ids:
        print(f"{client_id}: team={seen.by_client[client_id]['team']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))

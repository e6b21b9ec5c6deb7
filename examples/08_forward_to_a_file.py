"""A custom plugin: a forwarder that appends pushes to a file, and tries again while it cannot.

Run it: ``python examples/08_forward_to_a_file.py`` (needs ``odradek[all]``). Takes seconds: the
folder of the file appears late, and no push is lost.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    file = "my_package"
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import PluginConfig, Retry, TelemetryRecord, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host


class FileForwarder:
    """Has a thread and an event loop of its own. Pushes wait in the host's log until `deliver` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused = threading.Event()
        self.delivered = threading.Event()

    async def start(self) -> None:
        """The file may still be missing: the host retries."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        lines = [
            json.dumps(
                {"client": record.context.client_id, "otlp": base64.b64encode(record.payload.data).decode()}
            )
            for record in batch
        ]
        try:
            await asyncio.to_thread(self.append, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            self.refused.set()
            raise Retry(str(error), after_s=0.2) from error
        self.delivered.set()

    def append(self, text: str) -> None:
        """Blocks, so it is called in a thread."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    async def close(self) -> None:
        """The file has everything that was delivered."""


class FilePlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    def __init__(self) -> None:
        self.forwarder: FileForwarder | None = None

    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> FileForwarder | None:
        """Read ``[plugins.file]``; without a path the plugin offers nothing."""
        path = config.text("path")
        self.forwarder = FileForwarder(Path(path)) if path else None
        return self.forwarder


def produce(bootstrap: str, done: threading.Event) -> None:
    """Run an unmodified client."""
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "my-app"})
    while not done.wait(0.1):
        producer.produce("greetings", value=b"hello")
        producer.poll(0)
    producer.flush(5)


async def main(folder: Path) -> None:
    path = folder / "late" / "pushes.jsonl"
    plugins, plugin, done = load_plugins(), FilePlugin(), threading.Event()
    plugins.add("file", plugin, distribution="example", version="1.0")
    config = load_config(
        overrides=[
            f"data.dir={folder / 'data'}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "subscriptions.everything.metrics=*",
            "subscriptions.everything.interval.ms=500",
            f"plugins.file.path={path}",
        ]
    )
    host = Host(config, plugins=plugins)
    await host.start()
    client = asyncio.to_thread(produce, f"127.0.0.1:{host.listeners[0].bound_port}", done)
    running = asyncio.create_task(client)
    try:
        assert plugin.forwarder is not None
        print(
            "the folder is missing; tried again:", await asyncio.to_thread(plugin.forwarder.refused.wait, 20)
        )
        path.parent.mkdir()
        print("the folder exists; delivered:", await asyncio.to_thread(plugin.forwarder.delivered.wait, 20))
    finally:
        done.set()
        await running
        await host.stop()
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    print("the first line is a push of", first["client"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))

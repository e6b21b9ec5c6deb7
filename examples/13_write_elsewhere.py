"""A custom plugin: a writer that keeps the telemetry topic elsewhere, here in a file.

Run it: ``python examples/13_write_elsewhere.py`` (needs ``odradek[all]``). Takes seconds.

With ``telemetry.durability = "kafka"`` a push is answered when the writer has acknowledged its record.
odradek-kafka writes to a Kafka cluster; a plugin like this one can write to another log. It is the class and
the hook below. To install it, put both into a package and name the package in its pyproject.toml::

    [project.entry-points.odradek]
    synced = "my_package"
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import queue
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import NotWritten, PluginConfig, TelemetryRecord, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.topic import encode_headers, record_key


class SyncedFile:
    """Writes on a thread of its own: the host's loop must not wait for a disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.waiting: queue.Queue[tuple[int, str] | None] = queue.Queue()
        self.written = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.report: Callable[[int, NotWritten | None], None]

    def start(self, topic: str, timeout_ms: int, report: Callable[[int, NotWritten | None], None]) -> None:
        self.report = report
        self.thread.start()

    def write(self, number: int, record: TelemetryRecord) -> None:
        headers = {name: (value or b"").decode() for name, value in encode_headers(record)}
        value = base64.b64encode(record.payload.data).decode()
        key = record_key(record.payload.client_instance_id).decode()
        self.waiting.put((number, json.dumps({"key": key, "headers": headers, "value": value})))

    def run(self) -> None:
        while (entry := self.waiting.get()) is not None:
            number, line = entry
            try:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                self.report(number, NotWritten("disk", str(error)))
            else:
                self.report(number, None)
                self.written.set()

    def flush(self, timeout_s: float) -> None:
        self.waiting.put(None)
        self.thread.join(timeout_s)


class SyncedPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    def __init__(self) -> None:
        self.writer: SyncedFile | None = None

    @hookimpl
    def odradek_topic_writer(self, config: PluginConfig) -> SyncedFile | None:
        """Read ``[plugins.synced]``; without a path the plugin offers nothing."""
        path = config.text("path")
        self.writer = SyncedFile(Path(path)) if path else None
        return self.writer


async def main(folder: Path) -> None:
    path = folder / "telemetry.jsonl"
    plugins, plugin = load_plugins(), SyncedPlugin()
    plugins.add("synced", plugin, distribution="example", version="1.0")
    config = load_config(
        overrides=[
            f"data.dir={folder / 'data'}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            "telemetry.durability=kafka",
            "subscriptions.everything.metrics=*",
            "subscriptions.everything.interval.ms=500",
            f"plugins.synced.path={path}",
        ]
    )
    host = Host(config, plugins=plugins)
    await host.start()
    try:
        assert plugin.writer is not None
        producer = Producer(
            {"bootstrap.servers": f"127.0.0.1:{host.listeners[0].bound_port}", "client.id": "my-app"}
        )
        print("a push is on the disk:", await asyncio.to_thread(plugin.writer.written.wait, 20))
        del producer
    finally:
        await host.stop()
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    print("the first line is a push of", first["headers"]["client_id"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))

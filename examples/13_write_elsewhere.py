"""A custom plugin: a writer that keeps the telemetry topic elsewhere, here in a file.

Run it: ``python examples/13_write_elsewhere.py`` (needs ``odradek[demo]``). Takes seconds.

With ``telemetry.durability = "kafka"`` a push is answered when the writer has acknowledged its record.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Producer

from odradek import testing
from odradek.plugin import NotWritten, PluginConfig, TelemetryRecord, hookimpl
from odradek.topic import encode_headers


class SyncedFile:
    """Writes on a thread of its own: the host's loop must not wait for a disk."""

    @hookimpl
    def odradek_topic_writer(self, config: PluginConfig) -> SyncedFile:
        self.path, self.thread = Path(config.text("path") or "telemetry.jsonl"), ThreadPoolExecutor(1)
        return self

    def start(self, topic: str, timeout_ms: int, report: Callable[[int, NotWritten | None], None]) -> None:
        self.report = report

    def write(self, number: int, record: TelemetryRecord) -> None:
        headers = {name: (value or b"").decode() for name, value in encode_headers(record)}
        self.thread.submit(self.append, number, json.dumps(headers | {"value": record.payload.data.hex()}))

    def append(self, number: int, line: str) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                print(line, file=file, flush=True)
                os.fsync(file.fileno())
            self.report(number, None)
        except OSError as error:
            self.report(number, NotWritten("disk", str(error)))

    def flush(self, timeout_s: float) -> None:
        self.thread.shutdown()


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp(prefix="odradek-example-")) / "telemetry.jsonl"
    with testing.host(plugins={SyncedFile: {"path": str(path)}}, telemetry_durability="kafka") as host:
        host.subscribe("*", interval_ms=500)
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 3})
        print("accepted is a push of", host.telemetry.wait_for_push(timeout_s=20).client_id)
        del producer
        print("it is on the disk:", json.loads(path.read_text(encoding="utf-8").splitlines()[0])["client_id"])

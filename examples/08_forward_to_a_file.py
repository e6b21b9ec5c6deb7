"""A custom plugin: a forwarder that appends pushes to a file, and tries again while it cannot.

Run it: ``python examples/08_forward_to_a_file.py`` (needs ``odradek[demo]``). Takes seconds: the
folder of the file appears late, and no push is lost.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from odradek import testing
from odradek.plugin import PluginConfig, Retry, TelemetryRecord, hookimpl


class FileForwarder:
    """Has a thread and an event loop of its own. Pushes wait in the host's log until `deliver` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def start(self) -> None:
        """The file may still be missing: the host retries."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        lines = [f"{each.context.client_id} {each.payload.data.hex()}\n" for each in batch]
        try:
            with self.path.open("a", encoding="utf-8") as file:
                await asyncio.to_thread(file.write, "".join(lines))
        except OSError as error:
            raise Retry(str(error), after_s=0.2) from error

    async def close(self) -> None:
        """The file has everything that was delivered."""


class FilePlugin:
    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> FileForwarder | None:
        """Read the plugin's table; without a path the plugin offers nothing."""
        path = config.text("path")
        return FileForwarder(Path(path)) if path else None


if __name__ == "__main__":
    path = Path(tempfile.mkdtemp(prefix="odradek-example-")) / "late" / "pushes.txt"
    with testing.host(plugins={FilePlugin: {"path": str(path)}}, telemetry_durability="log") as host:
        host.subscribe("*", interval_ms=500)
        producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "my-app", "log_level": 3})
        print("the folder is missing; accepted:", host.telemetry.wait_for_push(timeout_s=20).client_id)
        path.parent.mkdir()
        while not path.exists():
            time.sleep(0.05)
        del producer
    print("the folder exists; delivered:", path.read_text(encoding="utf-8").split()[0])

"""A custom plugin: a source of metrics, which reads a file of OTLP/JSON as a collector writes it.

Run it: ``python examples/12_bring_records_in.py`` (needs ``odradek[enrich]``). Takes a second.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path

from odradek import testing
from odradek.otlp import Sender, metrics_of_json, otlp_records
from odradek.plugin import Intake, PluginConfig, hookimpl
from odradek.topic import decode_record


class LinesPlugin:
    """Has a thread and an event loop of its own as a source. A line is done when the host has stored it."""

    @hookimpl
    def odradek_source(self, config: PluginConfig) -> LinesPlugin:
        self.path, self.done = Path(config.text("path") or "metrics.jsonl"), 0
        return self

    async def run(self, intake: Intake) -> None:
        while True:
            lines = self.path.read_bytes().splitlines()
            if self.done < len(lines):
                data, now_ms = metrics_of_json(lines[self.done]), time.time_ns() // 1_000_000
                records = otlp_records(data, Sender(), now_ms, interval_ms=60_000)
                while (await intake.store(records)).left:  # no room for some: all of them come again
                    await asyncio.sleep(0.05)
                self.done += 1
            await asyncio.sleep(0.01)

    def lag(self) -> int | None:
        return self.path.read_bytes().count(b"\n") - self.done


def line(machine: str, temperature: float) -> str:
    metric = {"name": "temperature", "gauge": {"dataPoints": [{"asDouble": temperature}]}}
    label = {"key": "client_id", "value": {"stringValue": machine}}
    entry = {"resource": {"attributes": [label]}, "scopeMetrics": [{"metrics": [metric]}]}
    return json.dumps({"resourceMetrics": [entry]}) + "\n"


if __name__ == "__main__":
    path, plugin = Path(tempfile.mkdtemp(prefix="odradek-example-")) / "metrics.jsonl", LinesPlugin()
    path.write_text(line("boiler", 61.5) + line("fridge", 4.25), encoding="utf-8")
    with testing.host(plugins={plugin: {"path": str(path)}}, telemetry_durability="log") as host:
        while plugin.lag():
            time.sleep(0.05)
        for record in host.topics.records("__client_telemetry"):
            stored = decode_record(record.key, record.value, record.headers)
            print(f"stored a push of {stored.context.client_id}: {len(stored.payload.data)} bytes")

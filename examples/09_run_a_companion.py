"""A custom plugin: a companion, which is a process that the host starts, starts again, and stops.

Run it: ``python examples/09_run_a_companion.py`` (needs ``odradek[demo]``). Takes seconds.

The plugin is the class and the hook below. To install it, put both into a package and name the package in its
pyproject.toml::

    [project.entry-points.odradek]
    watch = "my_package"
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import PluginConfig, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host


class TopicWatch:
    """Writes the names of the topics to a file, in a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        return [sys.executable, __file__, bootstrap_servers, str(self.path)]

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """What ``odradek plugins`` shows: it asks in another process, so it reads the file."""
        try:
            found: dict[str, object] = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"topics": "not read yet"}
        return found


class WatchPlugin:
    """The object that the entry point would refer to. A module with this function works as well."""

    @hookimpl
    def odradek_companion(self, config: PluginConfig) -> TopicWatch | None:
        """Read ``[plugins.watch]``; without a path the plugin offers nothing."""
        path = config.text("path")
        return TopicWatch(Path(path)) if path else None


def watch(bootstrap: str, path: Path) -> None:
    """Run as the companion, until the host stops it or ends: then standard input ends, too."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    while True:
        topics = sorted(admin.list_topics(timeout=5).topics)
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"topics": topics, "process": os.getpid()}), encoding="utf-8")
        new.replace(path)  # a reader sees the old file or the new one
        time.sleep(0.2)


async def main(folder: Path) -> None:
    path = folder / "topics.json"
    plugins = load_plugins()
    plugins.add("watch", WatchPlugin(), distribution="example", version="1.0")
    config = load_config(
        overrides=[
            f"data.dir={folder / 'data'}",
            "listeners=PLAINTEXT://127.0.0.1:0",
            f"plugins.watch.path={path}",
        ]
    )
    host = Host(config, plugins=plugins)
    await host.start()
    try:
        async with asyncio.timeout(20):
            while not path.exists():
                await asyncio.sleep(0.05)
        status = TopicWatch(path).status("")
    finally:
        await host.stop()
    print("the companion ran in a process of its own:", status["process"] != os.getpid())
    print("it saw the telemetry topic:", "__client_telemetry" in str(status["topics"]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watch(sys.argv[1], Path(sys.argv[2]))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))

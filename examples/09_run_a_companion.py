"""A custom plugin: a companion, which is a process that the host starts, starts again, and stops.

Run it: ``python examples/09_run_a_companion.py`` (needs ``odradek[demo]``). Takes seconds.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka.admin import AdminClient

from odradek import testing
from odradek.plugin import PluginConfig, hookimpl


class TopicWatch:
    """Writes the names of the topics to a file, in a process of its own."""

    @hookimpl
    def odradek_companion(self, config: PluginConfig) -> TopicWatch:
        self.path = Path(config.text("path") or "topics.json")
        return self

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        return [sys.executable, __file__, bootstrap_servers, str(self.path)]

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        """What ``odradek plugins`` shows: it asks in another process, so it reads the file."""
        return dict(json.loads(self.path.read_text(encoding="utf-8"))) if self.path.exists() else {}


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


if __name__ == "__main__":
    if len(sys.argv) > 1:
        watch(sys.argv[1], Path(sys.argv[2]))
    path, plugin = Path(tempfile.mkdtemp(prefix="odradek-example-")) / "topics.json", TopicWatch()
    with testing.host(plugins={plugin: {"path": str(path)}}) as host:
        host.topics.create("orders")
        while "orders" not in str(plugin.status(host.bootstrap)):
            time.sleep(0.05)
    print("the companion ran in a process of its own:", plugin.status("")["process"] != os.getpid())
    print("it saw", plugin.status("")["topics"])

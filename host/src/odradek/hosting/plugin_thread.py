"""A thread of its own for a receiver or exporter that blocks the event loop."""

from __future__ import annotations

import logging
from collections import deque
from threading import Condition, Thread
from typing import Any

from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.plugin_stats import PluginStats
from odradek.telemetry.receiver_plugin import Export
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

ENTRY_BYTES = 1_000
"""The memory of a waiting push beside its data: its request and its place in the queue."""


class PluginThread:
    """Calls one plugin, push after push, from a queue that is bounded in bytes.

    The host's loop calls `offer`, and counts drops; only the thread counts calls and failures.
    """

    def __init__(self, export: Export[Any], stats: PluginStats, max_bytes: int, clock: Clock) -> None:
        self.export = export
        self.stats = stats
        self.max_bytes = max_bytes
        self.clock = clock
        self.waiting: deque[tuple[Any, ClientTelemetryPayload]] = deque()
        self.held_bytes = 0
        self.changed = Condition()
        self.stopping = False
        self.dropping = False
        self.thread = Thread(target=self.live, name=f"odradek-plugin-{stats.name}", daemon=True)
        self.thread.start()

    def offer(self, context: Any, payload: ClientTelemetryPayload) -> None:
        """Queue a push, or count it as dropped. Never blocks."""
        size = len(payload.data) + ENTRY_BYTES
        with self.changed:
            dropped = self.stopping or self.held_bytes + size > self.max_bytes
            if not dropped:
                self.waiting.append((context, payload))
                self.held_bytes += size
                self.changed.notify()
        self.stats.dropped += dropped
        if dropped is not self.dropping:
            self.dropping = dropped
            log.warning(
                "the queue of plugin %s is full, its pushes are dropped"
                if dropped
                else "the queue of plugin %s has room again",
                self.stats.name,
                extra={"plugin": self.stats.name, "dropped": self.stats.dropped},
            )

    def live(self) -> None:
        """Call the plugin until the thread is stopped and nothing waits."""
        while True:
            with self.changed:
                while not self.waiting:
                    if self.stopping:
                        return
                    self.changed.wait()
                context, payload = self.waiting.popleft()
                self.held_bytes -= len(payload.data) + ENTRY_BYTES
            try:
                self.export(context, payload)
            except BaseException as error:  # noqa: BLE001 - neither an error nor sys.exit() ends the thread
                self.stats.fail(error, self.clock.monotonic_ms())
            else:
                self.stats.exported += 1

    def stop(self, timeout_s: float) -> None:
        """Give the plugin this long for what waits, then drop the rest. Blocks: use a thread."""
        with self.changed:
            self.stopping = True
            self.changed.notify()
        self.thread.join(timeout_s)
        with self.changed:
            lost = len(self.waiting)
            self.waiting.clear()
            self.held_bytes = 0
        self.stats.dropped += lost
        if lost or self.thread.is_alive():
            log.error(
                "plugin %s did not take its pushes before the host stopped",
                self.stats.name,
                extra={"plugin": self.stats.name, "dropped": lost},
            )


class PluginThreads:
    """All threads of the plugins of one host."""

    def __init__(self, max_bytes: int, clock: Clock) -> None:
        self.max_bytes = max_bytes
        self.clock = clock
        self.threads: list[PluginThread] = []

    def displace(self, export: Export[Any], stats: PluginStats) -> Export[Any]:
        """Start a thread for a plugin; see `receiver_plugin.Displace`."""
        thread = PluginThread(export, stats, self.max_bytes, self.clock)
        self.threads.append(thread)
        return thread.offer

    def waiting(self) -> dict[str, int]:
        """How many pushes wait, by plugin."""
        return {thread.stats.name: len(thread.waiting) for thread in self.threads}

    def stop(self, timeout_s: float) -> None:
        """Stop all threads within the time. Blocks: use a thread."""
        deadline_ms = self.clock.monotonic_ms() + timeout_s * 1_000
        for thread in self.threads:
            thread.stop(max(0.0, deadline_ms - self.clock.monotonic_ms()) / 1_000)

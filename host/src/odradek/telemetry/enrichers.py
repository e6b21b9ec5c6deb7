"""The plugins that label clients."""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.clock import Clock
from odradek.plugin.context import RequestContext
from odradek.plugin.protocols import Enricher
from odradek.telemetry.labels import EncodedLabels, encode_labels
from odradek.telemetry.plugin_stats import PluginStats

MAX_KEY_SETS = 256


@dataclass(slots=True, eq=False)
class Enrichers:
    """All enrichers, in the order in which their labels override each other: the last one wins."""

    clock: Clock
    slow_ms: int = 5
    entries: list[tuple[Enricher, PluginStats]] = field(default_factory=list)
    key_sets: dict[frozenset[bytes], frozenset[bytes]] = field(default_factory=dict)
    """Sets of label names, stored once: nearly all clients have the same names."""

    def register(self, name: str, enricher: Enricher) -> None:
        """Add an enricher. It is asked from the next new connection of a client instance on."""
        self.entries.append((enricher, PluginStats(name)))

    def stats(self) -> list[PluginStats]:
        """The record of each enricher, in order of registration."""
        return [stats for _, stats in self.entries]

    def labels(self, client_instance_id: bytes, context: RequestContext) -> EncodedLabels | None:
        """All labels of a client, or None. The labels of an enricher that raises or returns nonsense are left
        out.
        """
        labels: dict[str, str] = {}
        for enricher, stats in self.entries:
            started_ns = self.clock.monotonic_ns()
            try:
                offered = dict(enricher.labels(client_instance_id, context))
                encode_labels(offered)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a plugin hurts itself alone
                stats.fail(error, self.clock.monotonic_ms())
            else:
                stats.exported += 1
                labels |= offered
            if self.clock.monotonic_ns() - started_ns > self.slow_ms * 1_000_000:
                stats.slow += 1
        return self.shared(encode_labels(labels)) if labels else None

    def shared(self, labels: EncodedLabels) -> EncodedLabels:
        """The labels, with a set of names that is shared by other clients."""
        if len(self.key_sets) >= MAX_KEY_SETS:
            self.key_sets.clear()
        labels.keys = self.key_sets.setdefault(labels.keys, labels.keys)
        return labels

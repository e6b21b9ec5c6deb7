"""The plugins that label clients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.metrics.cluster_name import ClusterName
from odradek.otlp.labels import EncodedLabels, encode_labels
from odradek.plugin.config import ConfigError
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.context_labels import CLUSTER_NAME
from odradek.plugin.places import place_of
from odradek.plugin.plugin_stats import PluginStats, described
from odradek.plugin.protocols import Enricher
from odradek.waiting.clock import Clock

log = logging.getLogger(__name__)

MAX_KEY_SETS = 256
SAMPLE_INSTANCE_ID = bytes(15) + b"\1"
SAMPLE = RequestContext(
    connection=ConnectionContext(
        connection_id="127.0.0.1:9092-127.0.0.1:50000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=50_000,
        node_id=1,
        client_software_name="odradek-sample",
        client_software_version="1.0",
    ),
    api_key=72,
    api_version=0,
    correlation_id=1,
    client_id="odradek-sample",
    received_ms=0,
)
"""A request for which each enricher is asked before the first connection."""


@dataclass(slots=True, eq=False)
class Enrichers:
    """All enrichers, in the order in which their labels override each other: the last one wins. The first
    label is the name of the cluster.
    """

    clock: Clock
    cluster: ClusterName = field(default_factory=ClusterName)
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

    @property
    def is_empty(self) -> bool:
        """Whether no client has a label."""
        return not self.entries and self.cluster.text is None

    def labels(
        self, client_instance_id: bytes, context: RequestContext, *, is_own: bool = True
    ) -> EncodedLabels | None:
        """All labels of a client, or None. The labels of an enricher that raises or returns nonsense are left
        out.

        Args:
            client_instance_id: The client instance.
            context: Its request.
            is_own: It is a client of this cluster. Of others the context may tell the cluster.
        """
        cluster = context.connection.cluster_id or (self.cluster.text if is_own else None)
        labels = {} if cluster is None else {CLUSTER_NAME: cluster}
        for enricher, stats in self.entries:
            started_ns = self.clock.monotonic_ns()
            try:
                offered = checked(enricher.labels(client_instance_id, context))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - a plugin hurts itself alone
                stats.fail(error, self.clock.monotonic_ms())
            else:
                stats.exported += 1
                labels |= offered
            took_ns = self.clock.monotonic_ns() - started_ns
            if took_ns > self.slow_ms * 1_000_000:
                stats.block("labels", took_ns, self.clock.monotonic_ms())
        return self.shared(encode_labels(labels)) if labels else None

    def shared(self, labels: EncodedLabels) -> EncodedLabels:
        """The labels, with a set of names that is shared by other clients."""
        if len(self.key_sets) >= MAX_KEY_SETS:
            self.key_sets.clear()
        labels.keys = self.key_sets.setdefault(labels.keys, labels.keys)
        return labels


def try_enricher(name: str, enricher: Enricher) -> None:
    """Ask an enricher for the labels of a sample client, so that nonsense is found before the first push.

    Raises:
        ConfigError: The labels are not text.
    """
    try:
        offered = enricher.labels(SAMPLE_INSTANCE_ID, SAMPLE)
    except Exception as error:  # noqa: BLE001 - it may know the clients that will come
        problem = described(error) + place_of(error)
        extra = {"plugin": name, "problem": problem}
        log.warning("plugin %s cannot label a sample client: %s", name, problem, extra=extra)
        return
    try:
        checked(offered)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"plugins.{name}", str(error)) from error


def checked(offered: object) -> dict[str, str]:
    """The labels that an enricher returned.

    Raises:
        TypeError: They are no mapping of strings to strings.
        UnicodeEncodeError: A string cannot be written as UTF-8.
    """
    if not isinstance(offered, Mapping):
        raise TypeError(f"labels returned {type(offered).__name__}, expected a mapping of strings")
    for key, value in offered.items():
        for text, role in ((key, "as a name"), (value, f"for {key!r}")):
            if not isinstance(text, str):
                raise TypeError(f"labels returned {type(text).__name__} {role}, expected a string")
            text.encode()
    return dict(offered)

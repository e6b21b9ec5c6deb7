"""The forwarders of a host, fed from the log or, with ``telemetry.durability=memory``, from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.delivery.spool_writer import Offload
from odradek.server.config import HostConfig
from odradek.server.plugins.active_plugin import ActivePlugin
from odradek.server.plugins.forwarder_runner import ForwarderRunner
from odradek.server.spool import TelemetrySpool
from odradek.server.spool_keys import Durability
from odradek.telemetry.accepted_push import AcceptedPush, TelemetrySink


@dataclass(frozen=True, slots=True)
class MemorySink:
    """Gives each push to the forwarders at once; a forwarder with a full queue drops and counts it."""

    runners: Sequence[ForwarderRunner]

    def take(self, push: AcceptedPush) -> bool:
        """Never says no: who loses a push is the forwarder, not the client."""
        record = push.record()
        for runner in self.runners:
            runner.offer(record)
        return True


def make_spool(config: HostConfig, broker: Broker, offload: Offload) -> TelemetrySpool | None:
    """The log for pushes; None where they are not kept.

    Raises:
        ConfigError: A topic cannot be made.
    """
    if config.spool.durability is Durability.MEMORY:
        return None
    return TelemetrySpool(
        config.spool,
        config.telemetry.opened_max_bytes,
        broker.topics,
        broker.groups,
        broker.clock,
        broker.timer,
        offload,
    )


def make_runners(plugins: Sequence[ActivePlugin], spool: TelemetrySpool | None) -> list[ForwarderRunner]:
    """One runner per forwarder, not started."""
    return [
        ForwarderRunner(
            name, forwarder, plugin.forwarder_settings, feed=None if spool is None else spool.feed(name)
        )
        for plugin in plugins
        for name, forwarder in plugin.forwarders.items()
    ]


def sink_of(spool: TelemetrySpool | None, runners: Sequence[ForwarderRunner]) -> TelemetrySink | None:
    """Where accepted pushes go; None where nobody keeps them."""
    if spool is not None:
        return spool
    return MemorySink(runners) if runners else None

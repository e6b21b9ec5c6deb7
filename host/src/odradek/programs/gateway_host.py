"""The host of a gateway: everything of a host, with the listener of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.reachability import PATIENCE_MS
from odradek.meters.gateway_metrics import gateway_rows
from odradek.meters.loop_lag import LoopLag
from odradek.metrics.metric import MetricRow
from odradek.net.pairs.client_side import ClientSide
from odradek.net.pairs.gateway import Gateway
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.standstills import Standstills
from odradek.programs.config import HostConfig
from odradek.programs.followed_subscriptions import ClusterState
from odradek.programs.gateway_kinds import gateway_kinds
from odradek.programs.gateway_telemetry import GatewayTelemetry
from odradek.programs.host import Host

UNREACHABLE: Final = f"no broker has answered for {PATIENCE_MS // 1000} s"


class GatewayHost(Host):
    """The host of a gateway on the running event loop.

    Args:
        config: The configuration.
        gateway: Shared by its pairs.
        failed: See `Host`.

    Raises:
        ConfigError: See `Host`; or the certificate is not for the advertised name.
    """

    DESCRIPTORS_PER_CONNECTION = 2

    def __init__(self, config: HostConfig, gateway: Gateway, failed: Callable[[str], None]) -> None:
        super().__init__(config, failed=failed, listener_kinds=gateway_kinds(gateway))
        self.receivers.displace_all()  # whatever they do, the loop passes data
        self.outlets.needs_plugins = False  # nor does a plugin that fails take clients from their brokers
        self.gateway = gateway
        frame_bytes = max(config.gateway.hold_bytes, gateway.path.limits.max_push_bytes)
        gateway.memory = PairBytes(
            config.gateway.memory_bytes, config.memory, self.clock, self.timer, frame_bytes
        )
        gateway.standstills = Standstills(
            config.gateway.upstream_stuck_ms, self.clock, self.timer, gateway.memory
        )
        self.own = GatewayTelemetry(self, config.gateway.own_telemetry, gateway.learned)
        self.loop_lag: LoopLag | None = None
        self.meters.append(self.path_rows)
        gateway.path.quotas = PathQuotas(self.broker.quotas, self.dispatcher.routes)
        gateway.offer(self.own.answers, self.own.silence)
        if self.own.observation is not None:
            gateway.observe(self.own.observation)

    def observed(self) -> None:
        """None: the gateway observes its pairs, not the clients of the host."""

    async def start(self) -> None:
        await super().start()
        self.loop_lag = LoopLag()
        self.meters.append(self.loop_lag.metric_rows)
        self.own.start()
        path = self.gateway.settings.switch_file
        if path is not None:
            self.gateway.follow_file(path, self.timer)

    async def stop(self) -> None:
        self.own.stop()
        if self.loop_lag is not None:
            self.loop_lag.stop()
        await super().stop()

    def polled(self, state: ClusterState) -> None:
        """Take note of the result of a poll of the cluster."""
        if state.failure is None:
            self.gateway.reachability.reached()
        elif not state.nodes:
            self.gateway.reachability.missed(self.clock.monotonic_ms())
        self.own.polled(state)

    def not_ready(self) -> str | None:
        reached = self.gateway.reachability.is_ready(self.clock.monotonic_ms())
        return super().not_ready() or (None if reached else UNREACHABLE)

    def path_rows(self) -> Iterator[MetricRow]:
        """Yield the metrics of the data path."""
        sides = [side for listener in self.listeners for side in cast(set[Any], listener.channels)]
        now_ms = self.clock.monotonic_ms()
        yield from gateway_rows(self.gateway, cast(list[ClientSide], sides), now_ms)

"""The settings of a host that follows the telemetry subscriptions of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.gateway.gateway_settings import PATH
from odradek.settings.kinds import INT, Items, Whole
from odradek.settings.setting import setting

SERVERS: Final = "telemetry.subscriptions.bootstrap.servers"
PAGE: Final = "../howto/write-to-a-cluster.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowSettings:
    """The cluster whose CLIENT_METRICS resources are the subscriptions of `odradek serve`."""

    # fmt: off
    servers: tuple[str, ...] = setting(
        SERVERS, Items(), (),
        "Brokers of a cluster, as `HOST:PORT`, whose CLIENT_METRICS resources `odradek serve` follows; it "
        "refuses changes of its own ones. `odradek gateway` has `gateway.subscriptions`.", unset="none",
        page=PAGE,
    )
    command_config: Path | None = setting(
        "telemetry.subscriptions.command.config", PATH, None,
        "Properties file of the connections to that cluster, with the keys of Kafka's clients: "
        "`security.protocol`, `ssl.*`, and `sasl.*`.", unset="plain connections",
    )
    interval_ms: int = setting(
        "telemetry.subscriptions.interval.ms", Whole(INT, 100, 3_600_000), 10_000,
        "How often the host asks that cluster: two hosts disagree for at most this time and that of a poll, "
        "while the cluster answers both.", unit="ms", page=PAGE,
    )
    # fmt: on

"""The settings of a gateway's telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.gateway.observation.settings import ObservationSettings
from odradek.settings.kinds import INT, TEXT, Choice, Whole
from odradek.settings.setting import section, setting


class SubscriptionSource(StrEnum):
    """The subscriptions that apply to the clients of a gateway."""

    CLUSTER = "cluster"
    FILE = "file"
    BOTH = "both"


class SpoolFull(StrEnum):
    """The answer to a push that the telemetry topic cannot take."""

    THROTTLE = "throttle"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayTelemetrySettings:
    """The settings of a gateway's telemetry."""

    # fmt: off
    name: str | None = setting(
        "gateway.name", TEXT, None,
        "Name of this gateway in the label `gateway` of every push.", unset="the name of the machine",
        page="gateway.md",
    )
    subscriptions: SubscriptionSource = setting(
        "gateway.subscriptions", Choice({each.value: each for each in SubscriptionSource}),
        SubscriptionSource.BOTH,
        "Where subscriptions come from: the CLIENT_METRICS resources of the cluster, the tables "
        "`[subscriptions.NAME]` of the file, or both, where the file wins; with `cluster`, the file is used "
        "while the cluster refuses to list its resources.",
        page="gateway.md",
    )
    own_resources: bool = setting(
        "gateway.client.metrics", Choice({"pass": False, "own": True}), False,
        "Whether requests about CLIENT_METRICS resources pass to the brokers, or are about resources of the "
        "gateway's `own`, for a cluster that has none.", page="gateway.md",
    )
    poll_interval_ms: int = setting(
        "gateway.subscriptions.interval.ms", Whole(INT, 100, 3_600_000), 10_000,
        "How often the gateway asks the upstream cluster for its brokers and its subscriptions.", unit="ms",
    )
    spool_full: SpoolFull = setting(
        "gateway.spool.full", Choice({each.value: each for each in SpoolFull}), SpoolFull.THROTTLE,
        "While the telemetry topic is full or cannot be written: with `throttle`, clients push the same "
        "metrics later; with `drop`, their pushes are accepted and lost.", page="gateway.md",
    )
    observation: ObservationSettings = section(ObservationSettings)
    # fmt: on

    @property
    def reads_cluster(self) -> bool:
        """Whether the gateway asks the cluster for subscriptions."""
        return self.subscriptions is not SubscriptionSource.FILE

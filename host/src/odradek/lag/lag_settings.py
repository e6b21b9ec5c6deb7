"""Settings of lag: whose, how often, and how many series."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from odradek.bounds.bounded_regex import RegexBounds, RegexError, compiled_within
from odradek.lag.group_lag import Granularity
from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import INT, LONG, TEXT, Choice, Flag, Special, Whole
from odradek.settings.setting import setting
from odradek.wire.config_resource import ConfigType

PAGE: Final = "lag-metrics.md"
HOWTO: Final = "../howto/measure-lag.md"


class Measured(StrEnum):
    """The readers whose lag is measured."""

    NONE = "none"
    GROUPS = "groups"
    CLIENTS = "clients"
    ALL = "all"

    @property
    def has_groups(self) -> bool:
        """Whether groups are measured."""
        return self in (Measured.GROUPS, Measured.ALL)

    @property
    def has_clients(self) -> bool:
        """Whether clients are measured."""
        return self in (Measured.CLIENTS, Measured.ALL)


def read_expression(table: PluginConfig, key: str) -> str:
    """Return a regular expression.

    Raises:
        ConfigError: RE2 does not accept it.
    """
    text = table.text(key) or ""
    try:
        compiled_within(text, RegexBounds())
    except RegexError as error:
        raise table.error(key, f"expected a regular expression of RE2, found {text!r}: {error}") from None
    return text


EXPRESSION: Final = Special(type=ConfigType.STRING, shape="regular expression (RE2)", read=read_expression)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLagSettings:
    """The lag that a host measures of its own groups."""

    measured: Measured = setting(
        "telemetry.lag",
        Choice({each.value: each for each in Measured}),
        Measured.GROUPS,
        "Whose lag `odradek serve` writes into the telemetry topic: that of all `groups`, of all reading "
        "`clients`, of `all` of them, or `none`.",
        page=PAGE,
    )
    interval_ms: int = setting(
        "telemetry.lag.interval.ms",
        Whole(INT, 1_000, 600_000),
        2_000,
        "How often the ends of partitions are noted, from which the lag in seconds is computed.",
        unit="ms",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayLagSettings:
    """The lag of the cluster's groups that a gateway measures."""

    measured: Measured = setting(
        "gateway.lag",
        Choice({each.value: each for each in Measured}),
        Measured.NONE,
        "Whose lag `odradek gateway` measures: that of all `groups` of the cluster, which one of several "
        "gateways does; of the `clients` that read through the gateway; of `all`; or `none`.",
        page=HOWTO,
    )
    interval_ms: int = setting(
        "gateway.lag.interval.ms",
        Whole(INT, 1_000, 600_000),
        2_000,
        "How often the ends of partitions are asked for, from which the lag in seconds is computed.",
        unit="ms",
    )
    group: str | None = setting(
        "gateway.lag.group",
        TEXT,
        None,
        "Group of the cluster that all gateways join; its leader measures.",
        unset="`odradek.lag.` and the cluster's id",
        page=HOWTO,
    )
    alone: bool = setting(
        "gateway.lag.alone",
        Flag(),
        False,
        "A gateway that may not join the group measures all the same; only for a single gateway.",
        page=HOWTO,
    )
    reads: bool = setting(
        "lag.fetch",
        Flag(),
        True,
        "Reads the last batches of a topic where they may be markers of transactions; needs the right READ.",
        page=HOWTO,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LagSettings:
    """Which groups and topics, and what is written about them."""

    cluster_name: str | None = setting(
        "cluster.name",
        TEXT,
        None,
        "Name of the cluster in all metrics that the program reports: the attribute `cluster.name`, in "
        "Prometheus `cluster_name`.",
        unset="the cluster's id",
        page="metrics.md",
    )
    export_interval_ms: int = setting(
        "lag.export.interval.ms",
        Whole(INT, 1_000, 3_600_000),
        30_000,
        "How often the lag of groups is written; a group whose figures are the same is written again after "
        "five minutes.",
        unit="ms",
        page=PAGE,
    )
    groups: str = setting(
        "lag.groups",
        EXPRESSION,
        ".*",
        "Groups whose lag is measured: those whose whole id matches.",
    )
    topics: str = setting(
        "lag.topics",
        EXPRESSION,
        ".*",
        "Topics whose lag is measured: those whose whole name matches.",
    )
    granularity: Granularity = setting(
        "lag.granularity",
        Choice({each.value: each for each in Granularity}),
        Granularity.PARTITION,
        "Finest series of a group: those of each `partition`, of each `topic`, or of the `group` alone.",
    )
    max_series: int = setting(
        "lag.series.max",
        Whole(INT),
        200_000,
        "Most series of partitions and topics; beyond them the groups with the most have series of topics, "
        "then of the group alone, whose sums and maxima stay exact.",
        unit="series",
    )
    idle_groups_ms: int = setting(
        "lag.idle.groups.ms",
        Whole(LONG),
        604_800_000,
        "An empty group that has not committed for this long has series of the group alone.",
        unit="ms",
    )

"""Rates of replication, which can only be set at run time; after QuotaConfig and DynamicBrokerConfig."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.settings.kinds import LONG, Whole
from odradek.settings.setting import Scope, setting
from odradek.wire.limits import INT64_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationRates:
    """Bytes per second; the largest number means no limit."""

    # fmt: off
    leader: int = setting(
        "leader.replication.throttled.rate", Whole(LONG), INT64_MAX,
        "Bytes per second that throttled replicas may fetch from this broker.",
        unit="bytes/s", scope=Scope.BROKER, in_file=False,
    )
    follower: int = setting(
        "follower.replication.throttled.rate", Whole(LONG), INT64_MAX,
        "Bytes per second that this broker may fetch for throttled replicas.",
        unit="bytes/s", scope=Scope.BROKER, in_file=False,
    )
    alter_log_dirs: int = setting(
        "replica.alter.log.dirs.io.max.bytes.per.second", Whole(LONG), INT64_MAX,
        "Bytes per second for moving replicas between `log.dirs`.",
        unit="bytes/s", scope=Scope.BROKER, in_file=False,
    )
    # fmt: on

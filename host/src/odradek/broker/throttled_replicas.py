"""The replicas of a topic that the replication quotas throttle.

After Kafka's TopicConfigHandler and ThrottledReplicaListValidator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.plugin.config import ConfigError
from odradek.quota.quota_managers import QuotaManagers
from odradek.quota.replication_quota_manager import throttled_partitions
from odradek.settings.kinds import Items, elements
from odradek.settings.reading import by_key
from odradek.settings.setting import Scope, setting

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledReplicas:
    """Keys of a topic that say nothing about its logs: ``*``, or ``partition:broker`` pairs with commas."""

    # fmt: off
    leader: tuple[str, ...] = setting(
        LEADER_REPLICAS, Items(), (),
        "Replicas that `leader.replication.throttled.rate` applies to: `*` for all, or `PARTITION:BROKER` "
        "pairs.", scope=Scope.TOPIC, own_key=LEADER_REPLICAS, in_file=False, unset="none",
    )
    follower: tuple[str, ...] = setting(
        FOLLOWER_REPLICAS, Items(), (),
        "Replicas that `follower.replication.throttled.rate` applies to: `*` for all, or `PARTITION:BROKER` "
        "pairs.", scope=Scope.TOPIC, own_key=FOLLOWER_REPLICAS, in_file=False, unset="none",
    )
    # fmt: on


THROTTLED_REPLICAS = by_key(ThrottledReplicas)


def check_throttled_replicas(properties: Mapping[str, str]) -> None:
    """Check that the keys of a topic name replicas.

    Raises:
        ConfigError: A value is neither ``*`` nor a list of replicas.
    """
    for key in THROTTLED_REPLICAS:
        try:
            throttled_partitions(properties.get(key, ""), 0)
        except ValueError:
            raise ConfigError(
                key,
                f"Invalid value [{', '.join(elements(properties[key]))}] for configuration {key}: {key} must "
                "be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
            ) from None


def mark_throttled(quotas: QuotaManagers, node_id: int, topic: str, properties: Mapping[str, str]) -> None:
    """Throttle exactly the replicas that the keys of a topic name."""
    for key, manager in ((LEADER_REPLICAS, quotas.leader), (FOLLOWER_REPLICAS, quotas.follower)):
        named = properties.get(key, "").strip()
        if named:
            manager.mark_throttled(topic, throttled_partitions(named, node_id))
        else:
            manager.remove_throttle(topic)

"""The replicas of a topic that the replication quotas throttle.

After Kafka's TopicConfigHandler and ThrottledReplicaListValidator.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.config_key import elements
from odradek.plugin.config import ConfigError
from odradek.quota.quota_managers import QuotaManagers
from odradek.quota.replication_quota_manager import throttled_partitions

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
THROTTLED_REPLICAS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
"""Topic keys that do not configure its logs. Value: ``*``, or ``partition:broker`` pairs, comma-separated."""


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

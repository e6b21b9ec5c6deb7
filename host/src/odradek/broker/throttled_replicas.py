"""Which replicas of a topic are held to the rates of replication; after TopicConfigHandler and
ThrottledReplicaListValidator of Kafka.
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
"""Keys of a topic that say nothing about its logs: ``*``, or ``partition:broker`` pairs with commas."""


def check_throttled_replicas(properties: Mapping[str, str]) -> None:
    """Whether the keys of a topic name replicas where they have to.

    Raises:
        ConfigError: One does not.
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
    """Hold the replicas that the keys of a topic name to the rates, and no others of it."""
    for key, manager in ((LEADER_REPLICAS, quotas.leader), (FOLLOWER_REPLICAS, quotas.follower)):
        named = properties.get(key, "").strip()
        if named:
            manager.mark_throttled(topic, throttled_partitions(named, node_id))
        else:
            manager.remove_throttle(topic)

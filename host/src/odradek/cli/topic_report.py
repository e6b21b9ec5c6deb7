"""The output of ``odradek topics --describe``: the lines of kafka-topics.sh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from odradek.client.resources import ConfigEntry
from odradek.client.topic_descriptions import PartitionDescription, TopicDescription
from odradek.wire.config_resource import ConfigSource
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import uuid_text

MIN_ISR = "min.insync.replicas"
SMALLEST_MAP, LOAD_FACTOR = 16, 0.75
"""A HashMap starts with so many buckets, and doubles them when more than this share is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The topics and partitions to show."""

    living: AbstractSet[int]
    """Ids of the live brokers of the cluster."""
    overridden_only: bool = False
    """Show only topics that override a config, without their partitions."""
    which: AbstractSet[str] = frozenset()
    """Conditions of the partitions to show, as the names of their options; empty for all partitions."""

    def shows(self, partition: PartitionDescription, min_isr: int) -> bool:
        """Whether to show a partition."""
        kinds = {
            "unavailable_partitions": partition.leader not in self.living,
            "under_replicated_partitions": len(partition.in_sync) < len(partition.replicas),
            "under_min_isr_partitions": partition.leader is None or len(partition.in_sync) < min_isr,
            "at_min_isr_partitions": len(partition.in_sync) == min_isr,
        }
        return not self.which or any(kinds[kind] for kind in self.which)


def lines(topic: TopicDescription, entries: Sequence[ConfigEntry], report: Report) -> Iterator[str]:
    """Yield the lines of one topic."""
    own = overrides(entries)
    if not report.which and (own or not report.overridden_only):
        yield heading(topic, own)
    for partition in shown_partitions(topic, entries, report):
        yield partition_line(topic.name, partition)


def shown_topic(
    topic: TopicDescription, entries: Sequence[ConfigEntry], report: Report
) -> dict[str, Any] | None:
    """One topic as a JSON object; None if the report has nothing of it."""
    own, partitions = overrides(entries), shown_partitions(topic, entries, report)
    if (report.which and not partitions) or (report.overridden_only and not own):
        return None
    return {
        "topic": topic.name,
        "topic_id": None if topic.topic_id == NIL_UUID else uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "configs": {entry.name: entry.value for entry in own},
        "partitions": [
            {
                "partition": partition.index,
                "leader": partition.leader,
                "replicas": partition.replicas,
                "isr": partition.in_sync,
                "elr": partition.eligible_leader_replicas,
                "last_known_elr": partition.last_known_eligible,
            }
            for partition in partitions
        ],
    }


def overrides(entries: Sequence[ConfigEntry]) -> list[ConfigEntry]:
    """The configs that are not defaults."""
    return [entry for entry in in_map_order(entries) if entry.source != ConfigSource.DEFAULT]


def shown_partitions(
    topic: TopicDescription, entries: Sequence[ConfigEntry], report: Report
) -> list[PartitionDescription]:
    if report.overridden_only:
        return []
    min_isr = next((int(entry.value or 1) for entry in entries if entry.name == MIN_ISR), 1)
    return [partition for partition in topic.partitions if report.shows(partition, min_isr)]


def in_map_order(entries: Sequence[ConfigEntry]) -> list[ConfigEntry]:
    """The entries in the order of a ``java.util.HashMap`` by name, in which kafka-topics.sh prints them."""
    buckets = SMALLEST_MAP
    while len(entries) > buckets * LOAD_FACTOR:
        buckets *= 2
    return sorted(entries, key=lambda entry: map_hash(entry.name) % buckets)


def map_hash(name: str) -> int:
    """The hash of a name in a HashMap: ``String.hashCode`` with its upper half folded into the lower one."""
    code = 0
    for character in name:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code ^ code >> 16


def heading(topic: TopicDescription, own: Sequence[ConfigEntry]) -> str:
    """The line of the topic itself, with its non-default configs."""
    replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
    cells = [
        f"Topic: {topic.name}",
        *([] if topic.topic_id == NIL_UUID else [f"TopicId: {uuid_text(topic.topic_id)}"]),
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replicas}",
        f"Configs: {','.join(f'{entry.name}={entry.value}' for entry in own)}",
    ]
    return "\t".join(cells)


def partition_line(name: str, partition: PartitionDescription) -> str:
    cells = [
        "",
        f"Topic: {name}",
        f"Partition: {partition.index}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {joined(partition.replicas)}",
        f"Isr: {joined(partition.in_sync)}",
        f"Elr: {joined(partition.eligible_leader_replicas)}",
        f"LastKnownElr: {joined(partition.last_known_eligible)}",
    ]
    return "\t".join(cells)


def joined(brokers: Sequence[int] | None) -> str:
    """The brokers as a comma-separated list; ``N/A`` if the broker did not send it."""
    return "N/A" if brokers is None else ",".join(map(str, brokers))

"""The topics of a streams group's topology: which are missing, how many partitions internal topics need, and
how many tasks each subtopology has (KIP-1071).

After org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager. A topology that does not fit its
topics is no error of the member: the answer has a status, and the members get no tasks until it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import chain

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_heartbeat import CopartitionGroup, Subtopology, TopicInfo, Topology

MOST_NAMED = 3
"""Topics that a message names; the others are only counted."""

PartitionCount = Callable[[str], int]
"""The number of partitions of a topic; 0 if there is no such topic."""


class StatusCode(IntEnum):
    """Codes of `odradek.wire.messages.streams_group_heartbeat.Status`; after Kafka's response class."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with the topics as they are now."""

    tasks: Mapping[str, int] = field(default_factory=dict)
    """The number of tasks of each subtopology, in the order of their ids; empty if it is not known."""
    stateful: frozenset[str] = frozenset()
    """The subtopologies whose tasks have a changelog, and may have standbys."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions that was decided for each internal topic."""
    missing: Mapping[str, TopicInfo] = field(default_factory=dict)
    """The internal topics that must be created, by name."""
    problem: tuple[StatusCode, str] | None = None
    """Why members get no tasks."""

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class Unfit(Exception):
    """The topology does not fit the topics."""

    def __init__(self, code: StatusCode, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


def configured(topology: Topology, partition_count: PartitionCount) -> ConfiguredTopology:
    """Compare a topology with the topics.

    Raises:
        ApiError: STREAMS_INVALID_TOPOLOGY: no topics could fit it.
    """
    stateful = frozenset(
        each.subtopology_id for each in topology.subtopologies if each.state_changelog_topics
    )
    try:
        check_sources(topology, partition_count)
        counts = decided_counts(topology, partition_count)
        tasks = {each.subtopology_id: max(source_counts(each, counts)) for each in topology.subtopologies}
        missing = missing_topics(topology, counts, partition_count)
    except Unfit as unfit:
        return ConfiguredTopology(stateful=stateful, problem=(unfit.code, unfit.detail))
    problem = None
    if missing:
        detail = f"Internal topics are missing: {summary(missing)}"
        problem = (StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(dict(sorted(tasks.items())), stateful, counts, missing, problem)


def source_names(subtopology: Subtopology) -> Iterable[str]:
    """The topics that a subtopology reads."""
    return chain(subtopology.source_topics, (each.name for each in subtopology.repartition_source_topics))


def required_topics(topology: Topology) -> set[str]:
    """All topics of a topology that it reads or that hold its state."""
    return {
        name
        for each in topology.subtopologies
        for name in chain(source_names(each), (topic.name for topic in each.state_changelog_topics))
    }


def topology_size(topology: Topology) -> int:
    """The bytes of a topology, about."""
    return sum(map(len, required_topics(topology))) + sum(
        len(config.key) + len(config.value)
        for each in topology.subtopologies
        for topic in chain(each.repartition_source_topics, each.state_changelog_topics)
        for config in topic.topic_configs
    )


def summary(names: Iterable[str]) -> str:
    """Some names, in order."""
    ordered = sorted(names)
    more = len(ordered) - MOST_NAMED
    return ", ".join(ordered[:MOST_NAMED]) + (f" and {more} additional topics" if more > 0 else "")


def check_sources(topology: Topology, partition_count: PartitionCount) -> None:
    """Check that the topics that the application itself must create exist.

    Raises:
        Unfit: MISSING_SOURCE_TOPICS.
    """
    names = {name for each in topology.subtopologies for name in each.source_topics}
    missing = [name for name in names if not partition_count(name)]
    if missing:
        raise Unfit(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {summary(missing)} are missing.")


class Counts(dict[str, int]):
    """Numbers of partitions by topic. What exists counts before what was decided."""

    def __init__(self, partition_count: PartitionCount) -> None:
        super().__init__()
        self.partition_count = partition_count

    def of(self, name: str) -> int:
        """The number of a topic that exists or was decided; 0 for another."""
        return self.partition_count(name) or self.get(name, 0)


def decided_counts(topology: Topology, partition_count: PartitionCount) -> Counts:
    """Decide how many partitions each internal topic has.

    Raises:
        Unfit: INCORRECTLY_PARTITIONED_TOPICS.
        ApiError: STREAMS_INVALID_TOPOLOGY.
    """
    counts = Counts(partition_count)
    count_repartition_topics(topology, counts)
    fixed = {
        topic.name: bool(topic.partitions)
        for each in topology.subtopologies
        for topic in each.repartition_source_topics
    }
    for each in topology.subtopologies:
        for group in each.copartition_groups:
            copartition(copartitioned(each, group), fixed, counts)
    for each in topology.subtopologies:
        most = max(source_counts(each, counts), default=0)
        if not most:
            raise invalid(f"No source topics found for subtopology {each.subtopology_id}")
        for topic in each.state_changelog_topics:
            if topic.name not in each.source_topics:
                counts[topic.name] = most
    return counts


def copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    """The topics of a copartition group, which names them by their places in the subtopology's lists.

    Raises:
        ApiError: STREAMS_INVALID_TOPOLOGY.
    """
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    names: set[str] = set()
    for listed, places in (
        (subtopology.source_topics, group.source_topics),
        (repartition, group.repartition_source_topics),
    ):
        if not all(0 <= place < len(listed) for place in places):
            raise invalid(
                f"Copartition groups of subtopology {subtopology.subtopology_id} name topics that it does "
                "not have"
            )
        names.update(listed[place] for place in places)
    return names


def source_counts(subtopology: Subtopology, counts: Counts) -> list[int]:
    """The numbers of partitions of the topics that a subtopology reads."""
    return [counts.of(name) for name in source_names(subtopology)]


def count_repartition_topics(topology: Topology, counts: Counts) -> None:
    """Give each repartition topic as many partitions as the largest topic upstream, unless the topology says
    how many.

    Raises:
        ApiError: STREAMS_INVALID_TOPOLOGY.
    """
    declared = {
        topic.name: topic for each in topology.subtopologies for topic in each.repartition_source_topics
    }
    counts.update({name: topic.partitions for name, topic in declared.items() if topic.partitions})
    while True:
        needed = [
            (each, name)
            for each in topology.subtopologies
            for name in each.repartition_sink_topics
            if name not in counts
        ]
        if not needed:
            break
        before = len(counts)
        for each, name in needed:
            # a repartition topic that exists counts only once it is decided, as in Kafka
            upstream = [counts.get(topic.name, 0) for topic in each.repartition_source_topics]
            most = max(upstream + [counts.of(topic) for topic in each.source_topics], default=0)
            if most:
                counts[name] = most
        if len(counts) == before:
            raise invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in "
                "the topology that cannot be resolved."
            )
    if not declared.keys() <= counts.keys():
        raise invalid(
            "Failed to compute number of partitions for all repartition topics, because a repartition source "
            "topic is never used as a sink topic."
        )


def copartition(names: set[str], fixed: Mapping[str, bool], counts: Counts) -> None:
    """Give the repartition topics of one copartition group the same number of partitions as its other topics.

    Args:
        names: The topics of the group.
        fixed: All repartition topics of the topology, and whether it says how many partitions each has.
        counts: Changes.

    Raises:
        Unfit: INCORRECTLY_PARTITIONED_TOPICS.
    """
    internal = {name: counts.of(name) for name in names if name in fixed}
    others = {name: counts.of(name) for name in names if name not in fixed}
    said = {name: counts.of(name) for name, is_fixed in fixed.items() if is_fixed}
    if others:
        wanted = same(others, others)
    elif said:
        wanted = same(said, internal)
    else:
        wanted = max(internal.values(), default=0)
    for name, count in internal.items():
        counts[name] = wanted
        if fixed[name] and count != wanted:
            raise Unfit(
                StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of "
                f"partitions [{wanted}] of the source topic.",
            )


def same(counts: Mapping[str, int], told: Mapping[str, int]) -> int:
    """The number that all have; the refusal tells those of ``told``.

    Raises:
        Unfit: INCORRECTLY_PARTITIONED_TOPICS.
    """
    first, *more = set(counts.values())
    if more:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(told.items()))
        raise Unfit(
            StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
            f"Following topics do not have the same number of partitions: [{{{listed}}}]",
        )
    return first


def missing_topics(
    topology: Topology, counts: Counts, partition_count: PartitionCount
) -> dict[str, TopicInfo]:
    """The internal topics that do not exist.

    Raises:
        Unfit: INCORRECTLY_PARTITIONED_TOPICS: one exists with another number of partitions.
    """
    missing = {}
    for each in topology.subtopologies:
        for topic in chain(each.repartition_source_topics, each.state_changelog_topics):
            found = partition_count(topic.name)
            expected = counts.get(topic.name, found)
            if not found:
                missing[topic.name] = topic
            elif found != expected:
                raise Unfit(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {topic.name} has different number of partitions: expected {expected}, "
                    f"found {found}",
                )
    return missing


def invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)

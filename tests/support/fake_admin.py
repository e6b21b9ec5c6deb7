"""An `AdminClient` whose cluster is a few dictionaries, for tests of the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from odradek.client.address import Address
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.group_descriptions import GroupDescription, MemberDescription
from odradek.client.group_offsets import CommittedOffset
from odradek.client.groups import GroupListing
from odradek.client.leaders import Partition
from odradek.client.quotas import ANY, Match
from odradek.client.resources import (
    EARLIEST,
    LATEST,
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    Node,
    Offset,
)
from odradek.client.topic_descriptions import PartitionDescription, TopicDescription
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from odradek.wire.types import NIL_UUID

NODE = Node(1, Address("h", 9092))


def topic(
    name: str, *partitions: PartitionDescription, topic_id: bytes = NIL_UUID, is_internal: bool = False
) -> TopicDescription:
    """A topic with one healthy partition, or with the given ones."""
    return TopicDescription(
        name=name,
        topic_id=topic_id,
        is_internal=is_internal,
        partitions=partitions or (partition(0),),
    )


def partition(index: int, **changes: Any) -> PartitionDescription:
    """A healthy partition on the one broker, with changes."""
    facts: dict[str, Any] = {
        "leader": 1,
        "replicas": [1],
        "in_sync": [1],
        "eligible_leader_replicas": (),
        "last_known_eligible": (),
    }
    return PartitionDescription(index=index, **facts | changes)


def group(
    group_id: str, state: str = "Stable", *members: MemberDescription, **facts: Any
) -> GroupDescription:
    """A group of the classic protocol, with changes."""
    known: dict[str, Any] = {"protocol_type": "consumer", "assignor": "range" if members else ""}
    return GroupDescription(
        group_id=group_id, coordinator=NODE, state=state, members=members, **known | facts
    )


def member(member_id: str, *assignment: Partition, **facts: Any) -> MemberDescription:
    """A member of the classic protocol, with changes."""
    known: dict[str, Any] = {"instance_id": None, "client_id": f"cl-{member_id}", "host": "/127.0.0.1"}
    return MemberDescription(member_id=member_id, assignment=assignment, **known | facts)


def refused(code: ErrorCode, subject: str) -> RequestFailed:
    """The error of a broker."""
    return RequestFailed(code, subject=subject)


@dataclass
class FakeAdmin:
    """The cluster, and the requests it got; `client` replaces the class."""

    topics: dict[str, TopicDescription] = field(default_factory=dict)
    groups: dict[str, GroupDescription] = field(default_factory=dict)
    listings: list[GroupListing] = field(default_factory=list)
    committed: dict[str, dict[Partition, CommittedOffset]] = field(default_factory=dict)
    first: dict[Partition, int] = field(default_factory=dict)
    last: dict[Partition, int] = field(default_factory=dict)
    at_time: dict[Partition, int] = field(default_factory=dict)
    configs: dict[ConfigResource, list[ConfigEntry]] = field(default_factory=dict)
    quotas: dict[ClientQuotaEntity, dict[str, float]] = field(default_factory=dict)
    refusals: dict[object, RequestFailed] = field(default_factory=dict)
    """By topic, group or partition."""
    failure: ClientError | None = None
    done: list[Any] = field(default_factory=list)
    """Changes, in order."""
    made_with: list[tuple[str, str, float]] = field(default_factory=list)

    def client(self, bootstrap: str, client_id: str, timeout_s: float, *security: object) -> Self:
        self.made_with.append((bootstrap, client_id, timeout_s))
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def metadata(self) -> MetadataResponse:
        if self.failure:
            raise self.failure
        rows = [
            MetadataResponseTopic(name=row.name, topic_id=row.topic_id, is_internal=row.is_internal)
            for row in self.topics.values()
        ]
        return MetadataResponse(topics=rows)

    def describe_cluster(self) -> ClusterDescription:
        return ClusterDescription(cluster_id="c", controller_id=1, nodes=[NODE])

    def describe_topics(self, names: Sequence[str], *, page: int = 2000) -> list[TopicDescription]:
        for name in names:
            if name not in self.topics:
                raise refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)
        return [self.topics[name] for name in names]

    def describe_configs(
        self, resources: Iterable[ConfigResource], *, synonyms: bool = False
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        return {resource: self.configs.get(resource, []) for resource in resources}

    def list_config_resources(self, types: Collection[int]) -> list[ConfigResource]:
        return [resource for resource in self.configs if resource.type in types]

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        if self.failure:
            raise self.failure
        self.done.append(dict(changes))

    def create_topics(self, new: Iterable[NewTopic], *, retry_on_quota_violation: bool) -> None:
        assert not retry_on_quota_violation
        for row in new:
            if row.name in self.topics:
                raise refused(ErrorCode.TOPIC_ALREADY_EXISTS, row.name)
            self.done.append(row)

    def create_partitions(
        self, totals: Mapping[str, NewPartitions], *, retry_on_quota_violation: bool
    ) -> None:
        assert not retry_on_quota_violation
        self.done.append(dict(totals))

    def delete_topics(self, names: Sequence[str], *, retry_on_quota_violation: bool) -> None:
        assert not retry_on_quota_violation
        self.done.append(names)

    def describe_client_quotas(
        self, components: Mapping[str, Match], *, strict: bool
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        assert strict == bool(components)
        return {
            entity: values
            for entity, values in self.quotas.items()
            if not components or entity.names().keys() == components.keys()
            if all(match in (ANY, entity.names()[kind]) for kind, match in components.items())
        }

    def alter_client_quotas(
        self, alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]]
    ) -> None:
        if self.failure:
            raise self.failure
        self.done.append(alterations)

    def list_groups(self, *, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
        if self.failure:
            raise self.failure
        return [
            row
            for row in self.listings
            if (not states or row.state in states) and (not types or row.type in types)
        ]

    def describe_groups(self, names: Iterable[str]) -> dict[str, GroupDescription | RequestFailed]:
        return {name: self.groups.get(name) or refused(ErrorCode.GROUP_ID_NOT_FOUND, name) for name in names}

    def delete_groups(self, names: Iterable[str]) -> dict[str, RequestFailed | None]:
        return {name: self.refusals.get(name) for name in names}

    def offset_fetch(
        self, group: str, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, CommittedOffset]:
        found = self.committed.get(group, {})
        return found if partitions is None else {at: found[at] for at in partitions if at in found}

    def offset_fetch_of_each(self, names: Iterable[str]) -> dict[str, dict[Partition, CommittedOffset]]:
        return {name: self.committed.get(name, {}) for name in names}

    def offset_commit(self, group: str, new: Mapping[Partition, CommittedOffset]) -> None:
        self.done.append((group, {at: row.offset for at, row in new.items()}))

    def offset_delete(
        self, group: str, partitions: Iterable[Partition]
    ) -> dict[Partition, RequestFailed | None]:
        return {at: self.refusals.get(at) for at in partitions}

    def list_offsets(
        self, partitions: Mapping[Partition, int], *, known_only: bool = False
    ) -> dict[Partition, Offset]:
        logs = {LATEST: self.last, EARLIEST: self.first}
        found = {at: logs.get(when, self.at_time).get(at) for at, when in partitions.items()}
        if known_only:
            return {at: Offset(offset, -1) for at, offset in found.items() if offset is not None}
        return {at: Offset(-1 if offset is None else offset, -1) for at, offset in found.items()}

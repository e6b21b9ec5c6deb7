"""A blocking admin client modeled on Kafka's `Admin`: each call returns when the operation is finished."""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from odradek.client import (
    acls,
    configs,
    elections,
    group_descriptions,
    group_offsets,
    groups,
    log_dirs,
    offsets,
    quotas,
    topic_descriptions,
    topics,
    users,
)
from odradek.client.address import Address
from odradek.client.cluster import Cluster
from odradek.client.connection import DEFAULT_TIMEOUT_S, SOFTWARE_NAME
from odradek.client.elections import ElectionType
from odradek.client.errors import RequestFailed, UnsupportedVersion, check
from odradek.client.group_descriptions import GroupDescription
from odradek.client.group_offsets import CommittedOffset
from odradek.client.groups import GroupListing
from odradek.client.leaders import Partition
from odradek.client.log_dirs import LogDir
from odradek.client.quotas import Match
from odradek.client.resources import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    Node,
    Offset,
)
from odradek.client.retries import Retries, values
from odradek.client.topic_descriptions import PARTITIONS_PER_PAGE, TopicDescription
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.security.acl import Acl, AclFilter
from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.wire.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from odradek.client.sasl import SaslLogin


class AdminClient:
    """Queries and changes one cluster; a context manager.

    Every method raises `ClientError`: `RequestFailed` with the broker's code and message for the first item
    it refused, `ConnectFailed`, `TimedOut` or `UnsupportedVersion`. Methods that return a "result of each"
    return the refusals of single items instead. A temporary refusal (a coordinator is loading, a leader is
    moving) is retried until ``timeout_s`` has passed.

    Args:
        bootstrap: ``h1:p1,h2:p2``, tried in this order.
        client_id: The client id that the brokers use for quotas and logs.
        timeout_s: Limit for connecting, for each request with its response, and for all retries of an
            operation.
        login: How the client authenticates; None for listeners without authentication.
        tls: Encrypts the connections; None for listeners without TLS.

    Raises:
        ConfigError: ``bootstrap`` is not a list of addresses. The constructor does not connect.
    """

    def __init__(
        self,
        bootstrap: str,
        client_id: str = SOFTWARE_NAME,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        login: SaslLogin | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.cluster = Cluster(bootstrap, client_id, timeout_s, login, tls)
        self.timeout_ms = int(timeout_s * 1000)
        self.retries = Retries(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Closing again does nothing."""
        self.cluster.close()

    def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Brokers, topics and leaders, from Metadata; None requests all topics."""
        return self.cluster.metadata(None if topics is None else list(topics))

    def describe_cluster(self) -> ClusterDescription:
        """The brokers of the cluster. Brokers before 2.8 have no DescribeCluster and are sent Metadata."""
        try:
            response: DescribeClusterResponse = self.cluster.any().send(DescribeClusterRequest())
        except UnsupportedVersion:
            metadata = self.metadata([])
            nodes = [Node(row.node_id, Address(row.host, row.port), row.rack) for row in metadata.brokers]
            return ClusterDescription(
                cluster_id=metadata.cluster_id, controller_id=metadata.controller_id, nodes=nodes
            )
        check(response.error_code, response.error_message, "DescribeCluster")
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=[Node(row.broker_id, Address(row.host, row.port), row.rack) for row in response.brokers],
        )

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        keys: Sequence[str] | None = None,
        synonyms: bool = False,
        documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """The configuration of resources.

        Args:
            resources: Resources of any types. Requests about a broker are sent to that broker.
            keys: Names of keys; None for all.
            synonyms: Whether to fetch the values from other sources, too.
            documentation: Whether to fetch the description of each key; brokers before 2.6 send none.
        """
        wanted = list(resources)
        return self.retries.settle(
            lambda: configs.describe_configs(self.cluster, wanted, keys, synonyms, documentation)
        )

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        """Change keys. If one resource is refused, the others are changed nevertheless."""
        values(
            self.retries.settle_each(
                changes, lambda pending: configs.alter_configs(self.cluster, changes, pending, validate_only)
            )
        )

    def list_config_resources(self, types: Collection[int] = ()) -> list[ConfigResource]:
        """The resources of some types, or of all.

        Raises:
            UnsupportedVersion: The broker (before 4.1) can list only client metrics.
        """
        return self.retries.settle(lambda: configs.list_config_resources(self.cluster, types))

    def list_client_metrics(self) -> list[str]:
        """The names of the subscriptions, from brokers since 3.7."""
        return [resource.name for resource in self.list_config_resources({ResourceType.CLIENT_METRICS})]

    def describe_topics(
        self, names: Sequence[str], *, page: int = PARTITIONS_PER_PAGE
    ) -> list[TopicDescription]:
        """Topics with their partitions, in the order of ``names``; at most ``page`` partitions a request."""
        return self.retries.settle(lambda: topic_descriptions.describe_topics(self.cluster, names, page))

    def create_topics(
        self, new: Iterable[NewTopic], *, validate_only: bool = False, retry_on_quota_violation: bool = True
    ) -> None:
        """Create topics. Each topic succeeds or fails independently of the others.

        Args:
            new: The topics.
            validate_only: Validate the topics without creating them.
            retry_on_quota_violation: Whether to retry a topic that exceeds the client's quota, after the
                throttle time that the broker returned (KIP-599).
        """
        by_name = {topic.name: topic for topic in new}
        values(
            self.retries.settle_each(
                by_name,
                lambda pending: topics.create_topics(
                    self.cluster, [by_name[name] for name in pending], validate_only, self.timeout_ms
                ),
                retry_on_quota_violation,
            )
        )

    def create_partitions(
        self,
        totals: Mapping[str, NewPartitions],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
    ) -> None:
        """Add partitions to topics, each independently. For quotas see `create_topics`."""
        values(
            self.retries.settle_each(
                totals,
                lambda pending: topics.create_partitions(
                    self.cluster, {name: totals[name] for name in pending}, validate_only, self.timeout_ms
                ),
                retry_on_quota_violation,
            )
        )

    def delete_topics(self, names: Sequence[str], *, retry_on_quota_violation: bool = True) -> None:
        """Delete topics, each independently. For quotas see `create_topics`."""
        values(
            self.retries.settle_each(
                names,
                lambda pending: topics.delete_topics(self.cluster, pending, self.timeout_ms),
                retry_on_quota_violation,
            )
        )

    def describe_client_quotas(
        self, components: Mapping[str, Match], *, strict: bool = False
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """The quotas of the matching entities, by key.

        Args:
            components: By type (user, client-id, ip): a name, None for the default, or `ANY`. Empty for all.
            strict: Exclude entities that have other types as well.
        """
        return self.retries.settle(lambda: quotas.describe_client_quotas(self.cluster, components, strict))

    def alter_client_quotas(
        self,
        alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas by key; None removes a key. Each entity is changed independently."""
        values(
            self.retries.settle_each(
                alterations,
                lambda pending: quotas.alter_client_quotas(self.cluster, alterations, pending, validate_only),
            )
        )

    def list_offsets(
        self, partitions: Mapping[Partition, int], *, known_only: bool = False
    ) -> dict[Partition, Offset]:
        """Offsets of partitions.

        Args:
            partitions: By partition: a timestamp in ms, EARLIEST, LATEST or MAX_TIMESTAMP.
            known_only: Omit partitions that do not exist or have no leader, instead of failing.
        """
        wanted = offsets.led(self.cluster, partitions) if known_only else list(partitions)
        return values(self.list_offsets_of_each({at: partitions[at] for at in wanted}))

    def list_offsets_of_each(
        self, partitions: Mapping[Partition, int]
    ) -> dict[Partition, Offset | RequestFailed]:
        """The result of each: the offset at a timestamp, as for `list_offsets`."""
        return self.retries.settle_each(
            partitions, lambda pending: offsets.list_offsets(self.cluster, partitions, pending)
        )

    def delete_records(self, before: Mapping[Partition, int]) -> dict[Partition, int]:
        """Delete the records before an offset; -1 means the high watermark.

        Returns:
            The first remaining offset, by partition.
        """
        return values(self.delete_records_of_each(before))

    def delete_records_of_each(self, before: Mapping[Partition, int]) -> dict[Partition, int | RequestFailed]:
        """The result of each: the first remaining offset, as for `delete_records`."""
        return self.retries.settle_each(
            before, lambda pending: offsets.delete_records(self.cluster, before, pending, self.timeout_ms)
        )

    def list_groups(self, *, states: Collection[str] = (), types: Collection[str] = ()) -> list[GroupListing]:
        """The groups of all brokers.

        Args:
            states: Only groups in one of these states (brokers since 2.6); empty for all.
            types: Only groups of one of these types (brokers since 3.8); empty for all.
        """
        return self.retries.settle(lambda: groups.list_groups(self.cluster, states, types))

    def describe_groups(self, names: Iterable[str]) -> dict[str, GroupDescription | RequestFailed]:
        """The result of each: the description of a group of either protocol, or GROUP_ID_NOT_FOUND."""
        return self.retries.settle_each(
            names, lambda pending: group_descriptions.describe_groups(self.cluster, pending)
        )

    def delete_groups(self, names: Iterable[str]) -> dict[str, RequestFailed | None]:
        """Delete groups that have no members. Return the result of each: None for success."""
        return self.retries.settle_each(names, lambda pending: groups.delete_groups(self.cluster, pending))

    def offset_fetch(
        self, group: str, partitions: Iterable[Partition] | None = None, *, require_stable: bool = False
    ) -> dict[Partition, CommittedOffset]:
        """The committed offsets of a group, by partition.

        Args:
            group: The group id. A group that does not exist has no offsets.
            partitions: The partitions; None for all. The result omits partitions without an offset.
            require_stable: Wait for open transactions that may still change an offset.
        """
        wanted = None if partitions is None else list(partitions)
        return self.retries.settle(
            lambda: group_offsets.offset_fetch(self.cluster, group, wanted, require_stable)
        )

    def offset_fetch_of_each(
        self, names: Iterable[str]
    ) -> dict[str, dict[Partition, CommittedOffset] | RequestFailed]:
        """The result of each group: all its committed offsets, as for `offset_fetch`."""
        return self.retries.settle_each(
            names, lambda pending: group_offsets.offset_fetch_of_each(self.cluster, pending)
        )

    def offset_commit(self, group: str, new: Mapping[Partition, CommittedOffset]) -> None:
        """Commit offsets for a group without members. The group is created if it does not exist."""
        values(
            self.retries.settle_each(
                new, lambda pending: group_offsets.offset_commit(self.cluster, group, new, pending)
            )
        )

    def offset_delete(
        self, group: str, partitions: Iterable[Partition]
    ) -> dict[Partition, RequestFailed | None]:
        """Delete offsets of topics without subscribers. Return the result of each: None for success."""
        return self.retries.settle_each(
            partitions, lambda pending: group_offsets.offset_delete(self.cluster, group, pending)
        )

    def describe_log_dirs(self, brokers: Sequence[int] | None = None) -> dict[int, list[LogDir]]:
        """The log directories of brokers and the replicas in them; None for all brokers."""
        return self.retries.settle(lambda: log_dirs.describe_log_dirs(self.cluster, brokers))

    def elect_leaders(
        self, kind: ElectionType, partitions: Iterable[Partition] | None = None
    ) -> dict[Partition, RequestFailed | None]:
        """Elect leaders. The result of each: None for a new leader, ELECTION_NOT_NEEDED for no change.

        Args:
            kind: The replicas that may become leader.
            partitions: The partitions; None for all that need an election.
        """
        if partitions is None:
            return self.retries.settle(
                lambda: elections.elect_leaders(self.cluster, kind, None, self.timeout_ms)
            )
        return self.retries.settle_each(
            partitions, lambda pending: elections.elect_leaders(self.cluster, kind, pending, self.timeout_ms)
        )

    def describe_user_scram_credentials(
        self, names: Sequence[str] | None = None
    ) -> dict[str, users.Iterations | RequestFailed]:
        """The result of each user: the mechanisms with their iterations, or RESOURCE_NOT_FOUND.

        Args:
            names: The users; None for all that have credentials.
        """
        return self.retries.settle(lambda: users.describe(self.cluster, names))

    def alter_user_scram_credentials(
        self,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> dict[str, RequestFailed | None]:
        """Set and remove credentials, one change per user. Return the result of each: None for success."""
        return self.retries.settle(lambda: users.alter(self.cluster, deletions, upsertions))

    def describe_acls(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs that a filter selects."""
        return self.retries.settle(lambda: acls.describe(self.cluster, wanted))

    def create_acls(self, wanted: Sequence[Acl]) -> dict[Acl, RequestFailed | None]:
        """Create ACLs. Return the result of each: None for success."""
        return self.retries.settle(lambda: acls.create(self.cluster, wanted))

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Delete the ACLs that any of the filters selects, and return them."""
        return self.retries.settle(lambda: acls.delete(self.cluster, filters))

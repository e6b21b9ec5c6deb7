"""An admin client after Kafka's `Admin`, blocking: each call is finished when it returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from odradek.client.address import Address
from odradek.client.cluster import Cluster
from odradek.client.connection import DEFAULT_TIMEOUT_S, SOFTWARE_NAME, Connection
from odradek.client.errors import RequestFailed, UnsupportedVersion, check
from odradek.client.offsets import offsets_of
from odradek.client.resources import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
    NewTopic,
    Node,
    Offset,
)
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from odradek.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.wire.messages.metadata import MetadataResponse

NODE_TYPES = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
"""Resources that only the broker they are about can answer for."""


class AdminClient:
    """Asks and changes one cluster; a context manager.

    Every method raises `ClientError`: `RequestFailed` with the broker's code and words for the first item it
    refused, `ConnectFailed`, `TimedOut` or `UnsupportedVersion`.

    Args:
        bootstrap: ``h1:p1,h2:p2``, tried in this order.
        client_id: What quotas and logs of the brokers know the client by.
        timeout_s: For connecting, and for each request with its answer.

    Raises:
        ConfigError: ``bootstrap`` is no list of addresses. Nothing is connected yet.
    """

    def __init__(
        self, bootstrap: str, client_id: str = SOFTWARE_NAME, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self.cluster = Cluster(bootstrap, client_id, timeout_s)
        self.timeout_ms = int(timeout_s * 1000)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hang up; harmless twice."""
        self.cluster.close()

    def metadata(self, topics: Sequence[str] | None = None) -> MetadataResponse:
        """Brokers, topics and leaders as the broker tells them; None asks for all topics."""
        return self.cluster.metadata(None if topics is None else list(topics))

    def describe_cluster(self) -> ClusterDescription:
        """The brokers. Asked by Metadata where the broker is older than DescribeCluster (2.8)."""
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
            resources: Of any types; a broker is asked about itself.
            keys: Names; None for all.
            synonyms: Whether to fetch where else values could come from.
            documentation: Whether to fetch what keys mean; brokers before 2.6 do not say.
        """
        described: dict[ConfigResource, list[ConfigEntry]] = {}
        for connection, group in self.by_broker(resources):
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configuration_keys=None if keys is None else list(keys),
                    )
                    for resource in group
                ],
                include_synonyms=synonyms,
                include_documentation=documentation,
            )
            response: DescribeConfigsResponse = connection.send(request)
            for result in response.results:
                resource = ConfigResource(result.resource_type, result.resource_name)
                check(result.error_code, result.error_message, str(resource))
                described[resource] = [config_entry(row) for row in result.configs]
        return described

    def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
    ) -> None:
        """Change keys. Of several resources, the good ones are changed when another one is refused."""

        def attempt() -> None:
            for connection, group in self.by_broker(changes, self.cluster.controller):
                request = IncrementalAlterConfigsRequest(
                    resources=[alteration(resource, changes[resource]) for resource in group],
                    validate_only=validate_only,
                )
                response: IncrementalAlterConfigsResponse = connection.send(request)
                for row in response.responses:
                    resource = ConfigResource(row.resource_type, row.resource_name)
                    check(row.error_code, row.error_message, str(resource))

        self.with_controller(attempt)

    def list_config_resources(self, types: Collection[int] = ()) -> list[ConfigResource]:
        """The resources of some types, or of all.

        Raises:
            UnsupportedVersion: The broker (before 4.1) lists client metrics only, other types were asked for.
        """
        client_metrics_only = set(types) == {ResourceType.CLIENT_METRICS}
        request = ListConfigResourcesRequest(resource_types=sorted(types))
        response: ListConfigResourcesResponse = self.cluster.any().send(
            request, least_version=0 if client_metrics_only else 1
        )
        check(response.error_code, subject="ListConfigResources")
        return [ConfigResource(row.resource_type, row.resource_name) for row in response.config_resources]

    def list_client_metrics(self) -> list[str]:
        """Names of the subscriptions; brokers from 3.7 on."""
        return [resource.name for resource in self.list_config_resources({ResourceType.CLIENT_METRICS})]

    def create_topics(self, topics: Iterable[NewTopic], *, validate_only: bool = False) -> None:
        """Create topics; each by itself."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic.name,
                    num_partitions=topic.partitions,
                    replication_factor=topic.replication_factor,
                    configs=[
                        CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()
                    ],
                )
                for topic in topics
            ],
            timeout_ms=self.timeout_ms,
            validate_only=validate_only,
        )

        def attempt() -> None:
            response: CreateTopicsResponse = self.cluster.controller().send(request, least_version=4)
            for row in response.topics:
                check(row.error_code, row.error_message, row.name)

        self.with_controller(attempt)

    def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics; each by itself."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names],
            topic_names=list(names),
            timeout_ms=self.timeout_ms,
        )

        def attempt() -> None:
            response: DeleteTopicsResponse = self.cluster.controller().send(request)
            for row in response.responses:
                check(row.error_code, row.error_message, row.name)

        self.with_controller(attempt)

    def list_offsets(self, partitions: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], Offset]:
        """Offsets of partitions.

        Args:
            partitions: By topic and partition: a timestamp in ms, or EARLIEST, LATEST or MAX_TIMESTAMP.
        """
        return offsets_of(self.cluster, partitions)

    def with_controller(self, attempt: Callable[[], None]) -> None:
        """Try again once when the controller has moved: the attempt looks it up anew."""
        try:
            attempt()
        except RequestFailed as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
            attempt()

    def by_broker(
        self, resources: Iterable[ConfigResource], otherwise: Callable[[], Connection] | None = None
    ) -> Iterable[tuple[Connection, list[ConfigResource]]]:
        """Which broker to ask about which resources."""
        anywhere: list[ConfigResource] = []
        for resource in resources:
            if resource.type in NODE_TYPES and resource.name.isdecimal():
                yield self.cluster.node(int(resource.name)), [resource]
            else:
                anywhere.append(resource)
        if anywhere:
            yield (otherwise or self.cluster.any)(), anywhere


def alteration(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigsResource:
    """The changes of one resource, on the wire."""
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=change.key, config_operation=change.operation, value=change.value)
            for change in changes
        ],
    )


def config_entry(row: DescribeConfigsResourceResult) -> ConfigEntry:
    """One key, from the wire."""
    return ConfigEntry(
        name=row.name,
        value=row.value,
        source=row.config_source,
        type=row.config_type,
        read_only=row.read_only,
        sensitive=row.is_sensitive,
        synonyms=[ConfigSynonym(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms],
        documentation=row.documentation or None,
    )

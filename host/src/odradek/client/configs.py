"""DescribeConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from odradek.client.cluster import Cluster
from odradek.client.connection import Connection
from odradek.client.errors import RequestFailed, check, failure
from odradek.client.resources import ConfigChange, ConfigEntry, ConfigResource, ConfigSynonym
from odradek.wire.config_resource import ResourceType
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

NODE_TYPES = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
"""Types of resources that belong to a broker and that only this broker can describe."""


def describe_configs(
    cluster: Cluster,
    resources: Iterable[ConfigResource],
    keys: Sequence[str] | None,
    synonyms: bool,
    documentation: bool,
) -> dict[ConfigResource, list[ConfigEntry]]:
    """The configuration of resources; see `AdminClient.describe_configs`."""
    described: dict[ConfigResource, list[ConfigEntry]] = {}
    for connection, group in by_broker(cluster, resources, cluster.any):
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


def config_entry(row: DescribeConfigsResourceResult) -> ConfigEntry:
    """Convert one key from the wire."""
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


def alter_configs(
    cluster: Cluster,
    changes: Mapping[ConfigResource, Sequence[ConfigChange]],
    resources: Iterable[ConfigResource],
    validate_only: bool,
) -> dict[ConfigResource, RequestFailed | None]:
    """Change some resources and return the result of each; see `AdminClient.incremental_alter_configs`."""
    outcomes: dict[ConfigResource, RequestFailed | None] = {}
    for connection, group in by_broker(cluster, resources, cluster.controller):
        request = IncrementalAlterConfigsRequest(
            resources=[alteration(resource, changes[resource]) for resource in group],
            validate_only=validate_only,
        )
        response: IncrementalAlterConfigsResponse = connection.send(request)
        for row in response.responses:
            resource = ConfigResource(row.resource_type, row.resource_name)
            outcomes[resource] = failure(row.error_code, row.error_message, str(resource))
    return outcomes


def alteration(resource: ConfigResource, changes: Sequence[ConfigChange]) -> AlterConfigsResource:
    """The changes of one resource as a message."""
    return AlterConfigsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=change.key, config_operation=change.operation, value=change.value)
            for change in changes
        ],
    )


def list_config_resources(cluster: Cluster, types: Collection[int]) -> list[ConfigResource]:
    """The resources of some types; see `AdminClient.list_config_resources`."""
    client_metrics_only = set(types) == {ResourceType.CLIENT_METRICS}
    request = ListConfigResourcesRequest(resource_types=sorted(types))
    response: ListConfigResourcesResponse = cluster.any().send(
        request, least_version=0 if client_metrics_only else 1
    )
    check(response.error_code, subject="ListConfigResources")
    return [ConfigResource(row.resource_type, row.resource_name) for row in response.config_resources]


def by_broker(
    cluster: Cluster, resources: Iterable[ConfigResource], otherwise: Callable[[], Connection]
) -> Iterable[tuple[Connection, list[ConfigResource]]]:
    """Group the resources by the broker to ask: the broker itself for its own, otherwise any."""
    anywhere: list[ConfigResource] = []
    for resource in resources:
        if resource.type in NODE_TYPES and resource.name.isdecimal():
            yield cluster.node(int(resource.name)), [resource]
        else:
            anywhere.append(resource)
    if anywhere:
        yield otherwise(), anywhere

"""ListConfigResources v0-v1 (KIP-714, KIP-1142); v0 was ListClientMetricsResources.

Behavior:
    * Topics are all topics; brokers and broker loggers are this node; client metrics and groups are listed if
      at least one of their keys is set.
    * No types means all types of the version; an unknown type refuses the request.
Versions:
    * v0: CLIENT_METRICS only, and the response does not name the type. v1: any type.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES_BY_VERSION = {0: frozenset({ResourceType.CLIENT_METRICS}), 1: frozenset(ResourceType)}


@answers(ListConfigResourcesRequest, each="config_resources", droppable=True)
def list_config_resources(
    request: ListConfigResourcesRequest, context: RequestContext, broker: Broker
) -> Generator[ConfigResource, None, ListConfigResourcesResponse]:
    """Name the resources of the types asked for."""
    broker.authorization.require_on_cluster(context, AclOperation.DESCRIBE_CONFIGS)
    supported = TYPES_BY_VERSION[context.api_version]
    wanted = set(request.resource_types) or supported
    if not wanted <= supported:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    for kind in sorted(wanted):
        for name in names(ResourceType(kind), broker):
            yield ConfigResource(resource_name=name, resource_type=kind)
    return ListConfigResourcesResponse()


def names(kind: ResourceType, broker: Broker) -> Iterable[str]:
    if kind is ResourceType.TOPIC:
        return sorted(topic.name for topic in broker.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.settings.node_id)]
    return broker.metadata.resource_names(kind)

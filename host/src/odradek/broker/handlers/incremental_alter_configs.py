"""IncrementalAlterConfigs v0-v1 (KIP-339).

Behavior:
    * Each resource is changed whole or not at all; a refused one leaves the others alone. All changes of a
      request are stored in one transaction before the answer.
    * CLIENT_METRICS: the checks run on the merged result; a resource without keys is gone.
    * TOPIC, and the defaults of topics at BROKER (of the node, or without a name of all): running logs go by
      them from the next append on.
    * BROKER: limits of connections, also of one listener, and rates of replication and of moves between
      directories hold at once; TOPIC: which replicas are held to these. Other keys of a broker stand in its
      configuration file: INVALID_REQUEST.
    * GROUP: ``consumer.session.timeout.ms``, ``consumer.heartbeat.interval.ms`` and
      ``consumer.assignment.interval.ms`` within the limits of ``group.consumer.min`` and ``max``; members go
      by them from their next heartbeat on.
    * A change that changes nothing has no effect: no subscription is re-evaluated.
Versions:
    * v1: flexible.
Differs from Kafka:
    * An operation that does not exist is UNKNOWN_SERVER_ERROR for its resource only.
    * BROKER_LOGGER is refused in words of this host.
    * GROUP keys of share and streams groups are unknown.
    * BROKER keys that are not settings of this host are refused; Kafka stores them.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange, alter
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def outcome(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    """What became of one resource."""
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def refused(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None
) -> IncrementalAlterConfigsResponse:
    """The same refusal for every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[outcome(resource, code, message) for resource in request.resources]
    )


@answers(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, refusal=refused)
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext, broker: Broker
) -> IncrementalAlterConfigsResponse:
    """Change single keys."""
    changes = [
        ResourceChange(
            type=resource.resource_type,
            name=resource.resource_name,
            keys=[KeyChange(key.name, key.config_operation, key.value) for key in resource.configs],
        )
        for resource in request.resources
    ]
    refusals = alter(changes, request.validate_only, broker)
    return IncrementalAlterConfigsResponse(
        responses=[
            outcome(resource, refusal.code, refusal.message)
            if refusal
            else outcome(resource, ErrorCode.NONE, None)
            for resource, refusal in zip(request.resources, refusals, strict=True)
        ]
    )

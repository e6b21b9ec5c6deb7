"""AlterConfigs v0-v2 (KIP-133), kept for old clients; IncrementalAlterConfigs replaces it.

Behavior:
    * The keys of the request replace all keys of the resource; a key that is not named gets its default.
    * Everything else as in IncrementalAlterConfigs.
Versions:
    * v1: as v0. v2: flexible.
Differs from Kafka:
    * The same resource twice is INVALID_REQUEST for both; Kafka 4.4 never answers such a request.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange, alter
from odradek.broker.configs.config_rights import ConfigRights
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import Step
from odradek.wire.config_resource import ConfigOperation
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def outcome(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    """The result for one resource."""
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def refused(request: AlterConfigsRequest, code: ErrorCode, message: str | None) -> AlterConfigsResponse:
    """Refuse every resource."""
    return AlterConfigsResponse(
        responses=[outcome(resource, code, message) for resource in request.resources]
    )


@answers(AlterConfigsRequest, AlterConfigsResponse, refusal=refused, each="responses")
def alter_configs(
    request: AlterConfigsRequest, context: RequestContext, broker: Broker
) -> Generator[AlterConfigsResourceResponse | Step, Any, AlterConfigsResponse]:
    """Replace all keys."""
    changes = []
    for resource in request.resources:
        changes.append(
            ResourceChange(
                type=resource.resource_type,
                name=resource.resource_name,
                keys=[KeyChange(key.name, ConfigOperation.SET, key.value) for key in resource.configs],
                replace=True,
            )
        )
        yield None
    rights = ConfigRights(broker.authorization, context, AclOperation.ALTER_CONFIGS)
    refusals = yield from alter(changes, request.validate_only, rights, broker)
    for resource, refusal in zip(request.resources, refusals, strict=True):
        code, message = (refusal.code, refusal.message) if refusal else (ErrorCode.NONE, None)
        yield outcome(resource, code, message)
    return AlterConfigsResponse()

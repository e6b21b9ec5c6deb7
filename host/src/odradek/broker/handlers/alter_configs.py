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
from odradek.broker.configs.config_changes import KeyChange, ResourceChange, results
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import Step
from odradek.wire.config_resource import ConfigOperation
from odradek.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


@answers(AlterConfigsRequest, refuses="resources", each="responses")
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
    yield from results(changes, request.validate_only, context, broker)
    return AlterConfigsResponse()

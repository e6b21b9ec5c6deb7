"""IncrementalAlterConfigs, API key 44 (KIP-339).

Source: IncrementalAlterConfigsRequest.json and IncrementalAlterConfigsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.messages.alter_configs import AlterConfigsResourceResponse as AlterConfigsResourceResponse
from odradek.wire.types import Bool, Int8, Int32, Message, String, Struct, between, since


class AlterableConfig(Struct):
    """One of `AlterConfigsResource.configs`."""

    name: String = ""
    config_operation: Int8 = 0
    """0 set, 1 delete, 2 append, 3 subtract; the last two for lists."""
    value: String | None = ""
    """Null when deleting."""


class AlterConfigsResource(Struct):
    """One of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: Int8 = 0
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


class IncrementalAlterConfigsRequest(Message, api_key=44, versions=between(0, 1), flexible=since(1)):
    """Change single configuration keys of resources."""

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


class IncrementalAlterConfigsResponse(Message, answers=IncrementalAlterConfigsRequest):
    """Answer to `IncrementalAlterConfigsRequest`."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)

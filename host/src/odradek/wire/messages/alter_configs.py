"""AlterConfigs, API key 33 (KIP-133).

Source: AlterConfigsRequest.json and AlterConfigsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Bool, Int8, Int16, Int32, Message, String, Struct, between, since


class AlterableConfig(Struct):
    """One of `AlterConfigsResource.configs`."""

    name: String = ""
    value: String | None = ""


class AlterConfigsResource(Struct):
    """One of `AlterConfigsRequest.resources`."""

    resource_type: Int8 = 0
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


class AlterConfigsResourceResponse(Struct):
    """One of `AlterConfigsResponse.responses`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


class AlterConfigsRequest(Message, api_key=33, versions=between(0, 2), flexible=since(2)):
    """Replace the whole configuration of resources."""

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


class AlterConfigsResponse(Message, answers=AlterConfigsRequest):
    """Answer to `AlterConfigsRequest`."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)

"""ListConfigResources, API key 74 (KIP-714, KIP-1142).

Source: ListConfigResourcesRequest.json and ListConfigResourcesResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, between, since


class ConfigResource(Struct):
    """One of `ListConfigResourcesResponse.config_resources`."""

    resource_name: String = ""
    resource_type: Annotated[Int8, since(1)] = 16
    """Version 0 lists client metrics only."""


class ListConfigResourcesRequest(Message, api_key=74, versions=between(0, 1), flexible=since(0)):
    """List resources that have a dynamic configuration."""

    resource_types: Annotated[list[Int8], since(1)] = field(default_factory=list)
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group; empty asks for all."""


class ListConfigResourcesResponse(Message, answers=ListConfigResourcesRequest):
    """Answer to `ListConfigResourcesRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = field(default_factory=list)

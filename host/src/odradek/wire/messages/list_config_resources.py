"""ListConfigResources, API key 74 (KIP-714, KIP-1142).

Source: ListConfigResourcesRequest.json and ListConfigResourcesResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class ConfigResource:
    """One of `ListConfigResourcesResponse.config_resources`."""

    resource_name: String = ""
    resource_type: Annotated[Int8, since(1)] = 16
    """Version 0 lists client metrics only."""


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesRequest:
    """List resources that have a dynamic configuration."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(0)

    resource_types: Annotated[list[Int8], since(1)] = field(default_factory=list)
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group; empty asks for all."""


@dataclass(slots=True, kw_only=True)
class ListConfigResourcesResponse:
    """Answer to `ListConfigResourcesRequest`."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = field(default_factory=list)

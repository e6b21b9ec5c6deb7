"""AlterConfigs, API key 33 (KIP-133).

Source: AlterConfigsRequest.json and AlterConfigsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Bool, Int8, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class AlterableConfig:
    """One of `AlterConfigsResource.configs`."""

    name: String = ""
    value: String | None = ""


@dataclass(slots=True, kw_only=True)
class AlterConfigsResource:
    """One of `AlterConfigsRequest.resources`."""

    resource_type: Int8 = 0
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterConfigsResourceResponse:
    """One of `AlterConfigsResponse.responses`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


@dataclass(slots=True, kw_only=True)
class AlterConfigsRequest:
    """Replace the whole configuration of resources."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


@dataclass(slots=True, kw_only=True)
class AlterConfigsResponse:
    """Answer to `AlterConfigsRequest`."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(2)

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)

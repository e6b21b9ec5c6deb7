"""IncrementalAlterConfigs, API key 44 (KIP-339).

Source: IncrementalAlterConfigsRequest.json and IncrementalAlterConfigsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.messages.alter_configs import AlterConfigsResourceResponse as AlterConfigsResourceResponse
from odradek.wire.types import Bool, Int8, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class AlterableConfig:
    """One of `AlterConfigsResource.configs`."""

    name: String = ""
    config_operation: Int8 = 0
    """0 set, 1 delete, 2 append, 3 subtract; the last two for lists."""
    value: String | None = ""
    """Null when deleting."""


@dataclass(slots=True, kw_only=True)
class AlterConfigsResource:
    """One of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: Int8 = 0
    """2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group."""
    resource_name: String = ""
    configs: list[AlterableConfig] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsRequest:
    """Change single configuration keys of resources."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    resources: list[AlterConfigsResource] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


@dataclass(slots=True, kw_only=True)
class IncrementalAlterConfigsResponse:
    """Answer to `IncrementalAlterConfigsRequest`."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = field(default_factory=list)

"""AlterClientQuotas, API key 49 (KIP-546).

Source: AlterClientQuotasRequest.json and AlterClientQuotasResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Bool, Float64, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class EntityData:
    """One of `RequestEntryData.entity` and `ResponseEntryData.entity`, also where quotas are described."""

    entity_type: String = ""
    """user, client-id or ip."""
    entity_name: String | None = ""
    """Null is the default entity."""


@dataclass(slots=True, kw_only=True)
class OpData:
    """One of `RequestEntryData.ops`."""

    key: String = ""
    value: Float64 = 0.0
    """Without meaning if ``remove`` is true."""
    remove: Bool = False


@dataclass(slots=True, kw_only=True)
class RequestEntryData:
    """One of `AlterClientQuotasRequest.entries`."""

    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ResponseEntryData:
    """One of `AlterClientQuotasResponse.entries`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasRequest:
    """Set and remove client quotas."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    entries: list[RequestEntryData] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


@dataclass(slots=True, kw_only=True)
class AlterClientQuotasResponse:
    """Answer to `AlterClientQuotasRequest`."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    throttle_time_ms: Int32 = 0
    entries: list[ResponseEntryData] = field(default_factory=list)

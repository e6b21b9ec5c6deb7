"""DescribeClientQuotas, API key 48 (KIP-546).

Source: DescribeClientQuotasRequest.json and DescribeClientQuotasResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.messages.alter_client_quotas import EntityData as EntityData
from odradek.wire.types import Bool, Float64, Int8, Int16, Int32, String, Versions, between, since


@dataclass(slots=True, kw_only=True)
class ComponentData:
    """One of `DescribeClientQuotasRequest.components`."""

    entity_type: String = ""
    """user, client-id or ip."""
    match_type: Int8 = 0
    """0 exactly ``match``, 1 the default entity, 2 any that is named."""
    match: String | None = ""
    """Null unless ``match_type`` is 0."""


@dataclass(slots=True, kw_only=True)
class ValueData:
    """One of `EntryData.values`."""

    key: String = ""
    value: Float64 = 0.0


@dataclass(slots=True, kw_only=True)
class EntryData:
    """One of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasRequest:
    """Find client quotas by the entities they apply to."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    components: list[ComponentData] = field(default_factory=list)
    strict: Bool = False
    """True leaves out quotas of entities with further components."""


@dataclass(slots=True, kw_only=True)
class DescribeClientQuotasResponse:
    """Answer to `DescribeClientQuotasRequest`."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[Versions] = between(0, 1)
    FLEXIBLE: ClassVar[Versions] = since(1)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[EntryData] | None = field(default_factory=list)
    """Null on error."""

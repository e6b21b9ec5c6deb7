"""DescribeClientQuotas, API key 48 (KIP-546).

Source: DescribeClientQuotasRequest.json and DescribeClientQuotasResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.messages.alter_client_quotas import EntityData as EntityData
from odradek.wire.types import (
    Bool,
    Float64,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    between,
    since,
)


class ComponentData(Struct):
    """One of `DescribeClientQuotasRequest.components`."""

    entity_type: String = ""
    """user, client-id or ip."""
    match_type: Int8 = 0
    """0 exactly ``match``, 1 the default entity, 2 any that is named."""
    match: String | None = ""
    """Null unless ``match_type`` is 0."""


class ValueData(Struct):
    """One of `EntryData.values`."""

    key: String = ""
    value: Float64 = 0.0


class EntryData(Struct):
    """One of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = field(default_factory=list)
    values: list[ValueData] = field(default_factory=list)


class DescribeClientQuotasRequest(Message, api_key=48, versions=between(0, 1), flexible=since(1)):
    """Find client quotas by the entities they apply to."""

    components: list[ComponentData] = field(default_factory=list)
    strict: Bool = False
    """True leaves out quotas of entities with further components."""


class DescribeClientQuotasResponse(Message, answers=DescribeClientQuotasRequest):
    """Answer to `DescribeClientQuotasRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[EntryData] | None = field(default_factory=list)
    """Null on error."""

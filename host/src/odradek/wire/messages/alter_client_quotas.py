"""AlterClientQuotas, API key 49 (KIP-546).

Source: AlterClientQuotasRequest.json and AlterClientQuotasResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Bool, Float64, Int16, Int32, Message, String, Struct, between, since


class EntityData(Struct):
    """One of `RequestEntryData.entity` and `ResponseEntryData.entity`, also where quotas are described."""

    entity_type: String = ""
    """user, client-id or ip."""
    entity_name: String | None = ""
    """Null is the default entity."""


class OpData(Struct):
    """One of `RequestEntryData.ops`."""

    key: String = ""
    value: Float64 = 0.0
    """Without meaning if ``remove`` is true."""
    remove: Bool = False


class RequestEntryData(Struct):
    """One of `AlterClientQuotasRequest.entries`."""

    entity: list[EntityData] = field(default_factory=list)
    ops: list[OpData] = field(default_factory=list)


class ResponseEntryData(Struct):
    """One of `AlterClientQuotasResponse.entries`."""

    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[EntityData] = field(default_factory=list)


class AlterClientQuotasRequest(Message, api_key=49, versions=between(0, 1), flexible=since(1)):
    """Set and remove client quotas."""

    entries: list[RequestEntryData] = field(default_factory=list)
    validate_only: Bool = False
    """True checks and changes nothing."""


class AlterClientQuotasResponse(Message, answers=AlterClientQuotasRequest):
    """Answer to `AlterClientQuotasRequest`."""

    throttle_time_ms: Int32 = 0
    entries: list[ResponseEntryData] = field(default_factory=list)

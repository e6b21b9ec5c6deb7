"""UpdateFeatures, API key 57 (KIP-584).

Source: UpdateFeaturesRequest.json and UpdateFeaturesResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    Bool,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Struct,
    between,
    only,
    since,
)


class FeatureUpdateKey(Struct):
    """One of `UpdateFeaturesRequest.feature_updates`."""

    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[Bool, only(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


class UpdatableFeatureResult(Struct):
    """One of `UpdateFeaturesResponse.results`."""

    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class UpdateFeaturesRequest(Message, api_key=57, versions=between(0, 2), flexible=since(0)):
    """Raise or lower finalized feature levels."""

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: Annotated[Bool, since(1)] = False


class UpdateFeaturesResponse(Message, answers=UpdateFeaturesRequest):
    """Answer to `UpdateFeaturesRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: Annotated[list[UpdatableFeatureResult], between(0, 1)] = field(default_factory=list)

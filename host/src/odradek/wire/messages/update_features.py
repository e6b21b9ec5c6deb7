"""UpdateFeatures, API key 57 (KIP-584).

Source: UpdateFeaturesRequest.json and UpdateFeaturesResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from odradek.wire.types import Bool, Int8, Int16, Int32, String, Versions, between, only, since


@dataclass(slots=True, kw_only=True)
class FeatureUpdateKey:
    """One of `UpdateFeaturesRequest.feature_updates`."""

    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[Bool, only(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


@dataclass(slots=True, kw_only=True)
class UpdatableFeatureResult:
    """One of `UpdateFeaturesResponse.results`."""

    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesRequest:
    """Raise or lower finalized feature levels."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = field(default_factory=list)
    validate_only: Annotated[Bool, since(1)] = False


@dataclass(slots=True, kw_only=True)
class UpdateFeaturesResponse:
    """Answer to `UpdateFeaturesRequest`."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[Versions] = between(0, 2)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: Annotated[list[UpdatableFeatureResult], between(0, 1)] = field(default_factory=list)

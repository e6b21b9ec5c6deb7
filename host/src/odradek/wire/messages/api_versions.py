"""ApiVersions, API key 18 (KIP-35, KIP-511, KIP-584, KIP-1242).

Source: ApiVersionsRequest.json and ApiVersionsResponse.json, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from odradek.wire.types import (
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    between,
    since,
    tag,
)


class ApiVersion(Struct):
    """One of `ApiVersionsResponse.api_keys`."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Struct):
    """One of `ApiVersionsResponse.supported_features`."""

    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Struct):
    """One of `ApiVersionsResponse.finalized_features`."""

    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsRequest(Message, api_key=18, versions=between(0, 5), flexible=since(3)):
    """Ask for the APIs and versions that the broker supports; the first request of a connection."""

    client_software_name: Annotated[String, since(3)] = ""
    client_software_version: Annotated[String, since(3)] = ""
    cluster_id: Annotated[String | None, since(5)] = None
    """The cluster that the client expects to reach; null if it does not know."""
    node_id: Annotated[Int32, since(5)] = -1
    """The node that the client expects to reach; -1 if it does not know."""


class ApiVersionsResponse(Message, answers=ApiVersionsRequest):
    """Answer to `ApiVersionsRequest`."""

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = field(default_factory=list)
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], tag(0, since(3))] = field(default_factory=list)
    """The features that this broker supports."""
    finalized_features_epoch: Annotated[Int64, tag(1, since(3))] = -1
    """-1 makes clients ignore the finalized features."""
    finalized_features: Annotated[list[FinalizedFeatureKey], tag(2, since(3))] = field(default_factory=list)
    """The feature levels that the cluster has agreed on."""
    zk_migration_ready: Annotated[Bool, tag(3, since(3))] = False

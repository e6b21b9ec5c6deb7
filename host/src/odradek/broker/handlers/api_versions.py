"""ApiVersions v0-v5 (KIP-35, KIP-511, KIP-1242).

Behavior:
    * Name and version of the client's software are stored on the connection, for matching and labels. They
      must match ``[a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?``; otherwise the answer is INVALID_REQUEST and
      nothing is stored.
    * A client may say which cluster and node it expects. Another cluster or node answers REBOOTSTRAP_REQUIRED
      and lists nothing; one of the two alone is INVALID_REQUEST. The connection goes on.
    * 71 and 72 are listed only while a plugin or the spool wants pushes, because a client that sees them
      starts to push (KIP-714).
Versions:
    * Above v5 the answer is a v0 body with UNSUPPORTED_VERSION that lists only ApiVersions.
    * v3 and v4 have the same request. Features with minimum 0 are listed as supported from v4 on: older Java
      clients treat them as an error (KAFKA-17492). Finalized features are listed in both.
    * Produce is advertised from v0: librdkafka up to 2.11 sends gzip, snappy and lz4 uncompressed without
      it (KAFKA-18659).
    * v5: the expected cluster and node.
Differs from Kafka:
    * kraft.version and eligible.leader.replicas.version are listed as supported, so that tools know them, and
      start at level 0: this host does not have what they turn on.
    * Every API refuses a client id longer than ``name.max.length``: POLICY_VIOLATION, and INVALID_REQUEST in
      the telemetry APIs. So does this one for the name or version of the software.
    * On a SASL listener, the expected cluster and node are also compared before the client has authenticated.
"""

from __future__ import annotations

import re

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.served import SERVED
from odradek.broker.dispatch.throttling import charge_if_known
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
NO_NODE = -1
"""Node id of a client that does not know which node it reaches."""
ZERO_MINIMUM_VERSION = 4
"""The first version in which the minimum of a supported feature may be 0."""
TELEMETRY_KEYS = frozenset({GetTelemetrySubscriptionsRequest.API_KEY, PushTelemetryRequest.API_KEY})


def refuse(_request: ApiVersionsRequest | None, code: ErrorCode, _message: str | None) -> ApiVersionsResponse:
    """Answer with an error. UNSUPPORTED_VERSION lists only the supported versions of ApiVersions."""
    keys = [listing(ApiVersionsRequest.API_KEY)] if code is ErrorCode.UNSUPPORTED_VERSION else []
    return ApiVersionsResponse(error_code=code, api_keys=keys)


def listing(api_key: int) -> ApiVersion:
    """The row of one API."""
    versions = SERVED[api_key]
    return ApiVersion(api_key=api_key, min_version=versions.first, max_version=versions.last)


@answers(ApiVersionsRequest, refusal=refuse, charge=charge_if_known)
def api_versions(request: ApiVersionsRequest, context: RequestContext, broker: Broker) -> ApiVersionsResponse:
    if context.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        names_half = (request.cluster_id is None) != (request.node_id == NO_NODE)
        if names_half or not SOFTWARE.fullmatch(name) or not SOFTWARE.fullmatch(version):
            return refuse(request, ErrorCode.INVALID_REQUEST, None)
        broker.names.check("client software name", name)
        broker.names.check("client software version", version)
        context.connection.client_software_name = name
        context.connection.client_software_version = version
    if request.cluster_id is not None and (request.cluster_id, request.node_id) != (
        broker.cluster_id,
        context.connection.node_id,
    ):
        return refuse(request, ErrorCode.REBOOTSTRAP_REQUIRED, None)
    return ApiVersionsResponse(
        api_keys=[listing(key) for key in SERVED if broker.wants_telemetry or key not in TELEMETRY_KEYS],
        supported_features=[
            SupportedFeatureKey(
                name=feature.name, min_version=feature.min_version, max_version=feature.max_version
            )
            for feature in broker.features
            if feature.min_version > 0 or context.api_version >= ZERO_MINIMUM_VERSION
        ],
        finalized_features_epoch=broker.features.epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in broker.features.finalized().items()
        ],
    )

"""ApiVersions: the rows that a client may use through the gateway.

Rows of APIs with addresses end at the last version whose layout is known, the telemetry APIs are added or
removed, and unknown APIs are hidden, because their responses may hold addresses. All other rows and the
features pass as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from odradek.gateway.rewriting.catalog import ADDRESSED
from odradek.gateway.rewriting.fields import BROKEN, INT32, count_at, int16_at, require_end
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.api_versions import ApiVersionsResponse
from odradek.wire.messages.describe_quorum import DescribeQuorumResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.messages.list_config_resources import ListConfigResourcesResponse
from odradek.wire.messages.push_telemetry import PushTelemetryResponse
from odradek.wire.varint import skip_tags, varint

LAST_API_VERSIONS = 5
"""The last version of ApiVersions whose response is known."""
LAST_KNOWN_KEY = 94
"""The last API of Kafka 4.4."""
LAST_QUORUM_WITHOUT_ADDRESSES = 1
MAX_ROWS = 1000
"""Kafka 4.4 has fewer than a hundred."""
TELEMETRY = (GetTelemetrySubscriptionsResponse.API_KEY, PushTelemetryResponse.API_KEY)
ROW = struct.Struct(">hhh")

Row = tuple[int, int, int, bytes]
"""API key, first version, last version, and the tagged section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiPolicy:
    """The choices of an operator."""

    telemetry: Literal["own", "pass", "off"] = "own"
    """Offer the telemetry APIs, pass the broker's rows, or hide them."""
    unknown_apis: Literal["hide", "pass"] = "hide"
    fetch_max_version: int = ADDRESSED[FetchResponse.API_KEY].last
    own_resources: bool = False
    """The gateway has CLIENT_METRICS resources of its own."""
    hide_quorum: bool = False
    """Hide the versions of DescribeQuorum that name addresses of controllers."""


def unsupported_api_versions(correlation_id: int) -> bytes:
    """Return the answer to a request of an unknown version, from its correlation id on, as Kafka answers."""
    row = ROW.pack(ApiVersionsResponse.API_KEY, 0, LAST_API_VERSIONS)
    return struct.pack(">ihi", correlation_id, ErrorCode.UNSUPPORTED_VERSION, 1) + row


def rewrite_api_versions(body: bytes, requested_version: int, policy: ApiPolicy) -> bytes:
    """Rewrite an ApiVersions response, which starts at its correlation id and is complete.

    Args:
        requested_version: The version of the request. A refusal has the layout of version 0 whatever it is.

    Raises:
        MalformedResponse: The response does not parse, or its version is not known.
    """
    if requested_version > LAST_API_VERSIONS:
        raise MalformedResponse(f"the layout of ApiVersions version {requested_version} is not known")
    try:
        (error_code,) = int16_at(body, 4)
        if error_code == ErrorCode.UNSUPPORTED_VERSION:
            return rewritten(body, 0, replace(policy, telemetry="off", own_resources=False))
        return body if error_code else rewritten(body, requested_version, policy)
    except BROKEN as error:
        raise MalformedResponse(f"ApiVersions of {len(body)} bytes: {error}") from error


def rewritten(body: bytes, version: int, policy: ApiPolicy) -> bytes:
    """Rewrite the rows of a version."""
    flexible = version >= 3
    rows, end = rows_at(body, 6, flexible)
    message_end = end + 4 if version >= 1 else end
    require_end(body, skip_tags(body, message_end) if flexible else message_end)
    kept = list(offered(rows, policy, b"\0" if flexible else b""))
    count = varint(len(kept) + 1) if flexible else INT32.pack(len(kept))
    packed = b"".join(ROW.pack(key, first, last) + tags for key, first, last, tags in kept)
    return body[:6] + count + packed + body[end:]


def rows_at(body: bytes, at: int, flexible: bool) -> tuple[list[Row], int]:
    """Return the rows and the position after them.

    Raises:
        WireError: There are more than `MAX_ROWS`.
    """
    count, at = count_at(body, at, flexible)
    if count > MAX_ROWS:
        raise WireError(f"{count} rows are more than {MAX_ROWS}")
    rows: list[Row] = []
    for _ in range(count):
        end = at + ROW.size
        key, first, last = ROW.unpack_from(body, at)
        at = skip_tags(body, end) if flexible else end
        rows.append((key, first, last, body[end:at]))
    return rows, at


def offered(rows: list[Row], policy: ApiPolicy, no_tags: bytes) -> Iterator[Row]:
    """The rows that a client gets, in the order of the keys."""
    missing = list(TELEMETRY) if policy.telemetry == "own" else []
    if policy.own_resources:
        missing.append(ListConfigResourcesResponse.API_KEY)
    removed = set(missing) if policy.telemetry == "pass" else {*TELEMETRY, *missing}
    for key, first, last, tags in rows:
        while missing and missing[0] < key:
            yield missing.pop(0), 0, 0, no_tags
        if key in removed:
            continue
        last = min(last, highest(key, policy))
        if last >= first:
            yield key, first, last, tags
    for key in missing:
        yield key, 0, 0, no_tags


def highest(key: int, policy: ApiPolicy) -> int:
    """Return the highest version of an API that a client may use; -1 for none."""
    if key == ApiVersionsResponse.API_KEY:
        return LAST_API_VERSIONS
    if key == FetchResponse.API_KEY:
        return min(policy.fetch_max_version, ADDRESSED[key].last)
    if key in ADDRESSED:
        return ADDRESSED[key].last
    if key == DescribeQuorumResponse.API_KEY and policy.hide_quorum:
        return LAST_QUORUM_WITHOUT_ADDRESSES
    if key > LAST_KNOWN_KEY and policy.unknown_apis == "hide":
        return -1
    return 0x7FFF

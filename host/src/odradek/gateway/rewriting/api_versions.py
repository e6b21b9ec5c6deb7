"""ApiVersions: the rows that a client may use through the gateway.

Rows of APIs with addresses end at the last version whose layout is known, the telemetry APIs are added or
removed, and unknown APIs are hidden, because their responses may hold addresses. All other rows and the
features pass as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from odradek.gateway.rewriting.catalog import ADDRESSED
from odradek.gateway.rewriting.fields import (
    BROKEN,
    INT16,
    INT32,
    LENGTH_BYTES,
    count_at,
    int16_at,
    require_end,
)
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.codec import element_writer, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.layout import ArrayOf, StructOf, layout
from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.wire.messages.describe_quorum import DescribeQuorumResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.messages.list_config_resources import ListConfigResourcesResponse
from odradek.wire.messages.push_telemetry import PushTelemetryResponse
from odradek.wire.varint import varint
from odradek.wire.walk_source import Walk, Wanted, compile_walk

LAST_API_VERSIONS = ApiVersionsResponse.VERSIONS.last
"""The last version of ApiVersions whose response is known."""
LAST_KNOWN_KEY = 94
"""The last API of Kafka 4.4."""
LAST_QUORUM_WITHOUT_ADDRESSES = 1
MAX_ROWS = 1000
"""Kafka 4.4 has fewer than a hundred."""
TELEMETRY = (GetTelemetrySubscriptionsResponse.API_KEY, PushTelemetryResponse.API_KEY)
WHOLE = Wanted(reads=("error_code", "api_keys"))
ROW = Wanted(reads=("api_key", "min_version", "max_version"))

Row = tuple[int, int, int, bytes, int]
"""API key, first version, last version, the bytes of the row, and where the last version is in them."""


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
    row = ApiVersion(api_key=ApiVersionsResponse.API_KEY, max_version=LAST_API_VERSIONS)
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
    return INT32.pack(correlation_id) + encode(refusal, 0)


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


@cache
def walks(version: int) -> tuple[Walk, Walk]:
    """The walks over a version of the response and over one of its rows."""
    shape = layout(ApiVersionsResponse, version)
    array = next(field.kind for field in shape.fields if field.name == "api_keys")
    assert isinstance(array, ArrayOf)
    assert isinstance(array.element, StructOf)
    title = f"ApiVersionsResponse v{version}"
    return compile_walk(shape, WHOLE, title), compile_walk(array.element, ROW, f"{title} row")


def rewritten(body: bytes, version: int, policy: ApiPolicy) -> bytes:
    """Rewrite the rows of a version."""
    flexible = version in ApiVersionsResponse.FLEXIBLE
    message_end, _, _, _, at, end = walks(version)[0](body, LENGTH_BYTES, len(body))
    require_end(body, message_end)
    write = element_writer(ApiVersionsResponse, version, "api_keys")
    assert write is not None
    kept = list(offered(rows_at(body, at, version), policy, write))
    count = varint(len(kept) + 1) if flexible else INT32.pack(len(kept))
    return body[:at] + count + b"".join(kept) + body[end:]


def rows_at(body: bytes, at: int, version: int) -> list[Row]:
    """Return the rows.

    Raises:
        WireError: There are more than `MAX_ROWS`.
    """
    count, at = count_at(body, at, version in ApiVersionsResponse.FLEXIBLE)
    if count > MAX_ROWS:
        raise WireError(f"{count} rows are more than {MAX_ROWS}")
    rows: list[Row] = []
    for _ in range(count):
        end, _, _, key, _, first, last_at, last = walks(version)[1](body, at, len(body))
        rows.append((key, first, last, body[at:end], last_at - at))
        at = end
    return rows


def offered(rows: list[Row], policy: ApiPolicy, write: Callable[[ApiVersion], bytes]) -> Iterator[bytes]:
    """The rows that a client gets, in the order of the keys."""
    missing = list(TELEMETRY) if policy.telemetry == "own" else []
    if policy.own_resources:
        missing.append(ListConfigResourcesResponse.API_KEY)
    removed = set(missing) if policy.telemetry == "pass" else {*TELEMETRY, *missing}
    for key, first, last, row, at in rows:
        while missing and missing[0] < key:
            yield write(ApiVersion(api_key=missing.pop(0)))
        if key in removed:
            continue
        last = min(last, highest(key, policy))
        if last >= first:
            yield row[:at] + INT16.pack(last) + row[at + INT16.size :]
    for key in missing:
        yield write(ApiVersion(api_key=key))


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

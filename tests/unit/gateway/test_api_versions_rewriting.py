"""The rows of ApiVersions that a client gets through the gateway."""

from __future__ import annotations

import pytest

from odradek.gateway.rewriting.api_versions import (
    LAST_API_VERSIONS,
    ApiPolicy,
    rewrite_api_versions,
    unsupported_api_versions,
)
from odradek.gateway.rewriting.rewriter import MalformedResponse
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

Rows = dict[int, tuple[int, int]]
HEADER = bytes(3) + b"\x07"
USUAL = ApiPolicy()
VERSIONS = range(LAST_API_VERSIONS + 1)
TELEMETRY: Rows = {71: (0, 0), 72: (0, 0)}


def response(rows: Rows, error_code: int = 0) -> ApiVersionsResponse:
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows.items()]
    return ApiVersionsResponse(error_code=error_code, api_keys=keys)


def seen(rows: Rows, policy: ApiPolicy = USUAL, version: int = 4) -> Rows:
    """The rows that a client gets, in their order."""
    frame = HEADER + encode(response(rows), version)
    out = rewrite_api_versions(frame, version, policy)
    assert out[:4] == HEADER
    answer = decode(ApiVersionsResponse, version, out[4:])
    return {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_telemetry_apis_are_added_in_the_order_of_keys(version: int) -> None:
    rows = seen({0: (0, 13), 18: (0, 5), 74: (0, 1)}, version=version)

    assert list(rows.items()) == [(0, (0, 13)), (18, (0, 5)), (71, (0, 0)), (72, (0, 0)), (74, (0, 1))]


@pytest.mark.parametrize("upstream", [{}, {71: (0, 0)}, {72: (0, 0)}, {71: (0, 3), 72: (1, 2)}])
def test_the_telemetry_apis_have_the_versions_of_the_gateway(upstream: Rows) -> None:
    assert list(seen(upstream).items()) == list(TELEMETRY.items())


def test_the_telemetry_apis_are_hidden_while_telemetry_is_off() -> None:
    rows = seen({18: (0, 4), 71: (0, 0), 72: (0, 0), 74: (0, 0)}, ApiPolicy(telemetry="off"))

    assert rows == {18: (0, 4), 74: (0, 0)}


@pytest.mark.parametrize(
    ("key", "last"), [(0, 13), (1, 18), (3, 13), (10, 6), (60, 2), (78, 2), (79, 2), (18, 5)]
)
def test_an_api_with_addresses_ends_at_the_last_known_version(key: int, last: int) -> None:
    older, same = {key: (0, last - 1)}, {key: (0, last)}

    assert seen({key: (0, last + 1)}, ApiPolicy(telemetry="off")) == same
    assert seen(same, ApiPolicy(telemetry="off")) == same
    assert seen(older, ApiPolicy(telemetry="off")) == older
    assert seen({key: (last + 1, last + 2)}, ApiPolicy(telemetry="off")) == {}


def test_no_first_version_changes() -> None:
    """Brokers list Produce from 0 although they serve 3 and newer (KAFKA-18659)."""
    assert seen({0: (0, 13), 1: (4, 18)}, ApiPolicy(telemetry="off")) == {0: (0, 13), 1: (4, 18)}


def test_fetch_can_be_limited_further_but_not_beyond_the_known_layouts() -> None:
    assert seen({1: (4, 18)}, ApiPolicy(telemetry="off", fetch_max_version=15)) == {1: (4, 15)}
    assert seen({1: (4, 30)}, ApiPolicy(telemetry="off", fetch_max_version=30)) == {1: (4, 18)}


def test_apis_newer_than_kafka_4_4_are_hidden_unless_they_may_pass() -> None:
    rows = {92: (0, 0), 93: (0, 0), 94: (0, 0), 95: (0, 7), 1000: (0, 1)}

    assert seen(rows, ApiPolicy(telemetry="off")) == {92: (0, 0), 93: (0, 0), 94: (0, 0)}
    assert seen(rows, ApiPolicy(telemetry="off", unknown_apis="pass")) == rows


def test_the_addresses_of_controllers_can_be_hidden() -> None:
    assert seen({55: (0, 2)}, ApiPolicy(telemetry="off")) == {55: (0, 2)}
    assert seen({55: (0, 2)}, ApiPolicy(telemetry="off", hide_quorum=True)) == {55: (0, 1)}


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_but_the_rows_passes(version: int) -> None:
    upstream = response({3: (0, 13)})
    upstream.throttle_time_ms = 1234 if version >= 1 else 0
    if version >= 3:
        upstream.supported_features = [
            SupportedFeatureKey(name="transaction.version", min_version=0, max_version=2)
        ]
        upstream.finalized_features_epoch = 77
        upstream.finalized_features = [
            FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=2)
        ]
        upstream.zk_migration_ready = True

    out = rewrite_api_versions(HEADER + encode(upstream, version), version, ApiPolicy(telemetry="off"))

    assert decode(ApiVersionsResponse, version, out[4:]) == upstream


def test_unknown_tags_of_rows_and_of_the_response_pass() -> None:
    """Tag 9 of the row and tag 5 of the response, each with content."""
    row = bytes((0, 3, 0, 0, 0, 13)) + b"\x01\x09\x02ab"
    frame = HEADER + bytes(2) + b"\x02" + row + bytes(4) + b"\x01\x05\x03xyz"

    assert rewrite_api_versions(frame, 3, ApiPolicy(telemetry="off")) == frame


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_version_is_read_in_the_layout_of_version_0(version: int) -> None:
    refusal = response({18: (0, 6)}, ErrorCode.UNSUPPORTED_VERSION)

    out = rewrite_api_versions(HEADER + encode(refusal, 0), version, ApiPolicy())

    expected = response({18: (0, 5)}, ErrorCode.UNSUPPORTED_VERSION)
    assert decode(ApiVersionsResponse, 0, out[4:]) == expected


def test_any_other_error_passes() -> None:
    frame = HEADER + bytes((0, 42)) + b"anything"

    assert rewrite_api_versions(frame, 4, ApiPolicy()) == frame


def test_a_request_newer_than_known_is_refused_with_the_known_versions() -> None:
    answer = unsupported_api_versions(7)

    assert answer[:4] == HEADER
    refusal = response({18: (0, 5)}, ErrorCode.UNSUPPORTED_VERSION)
    assert decode(ApiVersionsResponse, 0, answer[4:]) == refusal
    with pytest.raises(MalformedResponse, match="version 6"):
        rewrite_api_versions(answer, 6, ApiPolicy())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_that_ends_early_or_late_is_malformed(version: int) -> None:
    frame = HEADER + encode(response({0: (0, 13), 3: (0, 13)}), version)

    for end in range(len(frame)):
        with pytest.raises(MalformedResponse):
            rewrite_api_versions(frame[:end], version, ApiPolicy())
    with pytest.raises(MalformedResponse, match="ends at"):
        rewrite_api_versions(frame + b"\0", version, ApiPolicy())


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xfe", b"\x00\x00\x03\xe9"])
def test_a_wrong_number_of_rows_is_malformed(count: bytes) -> None:
    with pytest.raises(MalformedResponse):
        rewrite_api_versions(HEADER + bytes(2) + count + bytes(6 * 1001), 0, ApiPolicy())


def test_telemetry_of_the_brokers_passes() -> None:
    rows = {18: (0, 4), 71: (0, 0), 72: (0, 0)}

    assert seen(rows, ApiPolicy(telemetry="pass")) == rows
    assert seen({18: (0, 4)}, ApiPolicy(telemetry="pass")) == {18: (0, 4)}


@pytest.mark.parametrize("theirs", [{}, {74: (0, 1)}])
def test_own_resources_are_listed_as_kafka_3_7_does(theirs: Rows) -> None:
    rows = seen({18: (0, 5), **theirs, 75: (0, 0)}, ApiPolicy(own_resources=True))

    assert list(rows.items()) == [(18, (0, 5)), *TELEMETRY.items(), (74, (0, 0)), (75, (0, 0))]


def test_own_resources_do_not_change_a_refusal() -> None:
    refusal = HEADER + encode(response({18: (0, 4)}, ErrorCode.UNSUPPORTED_VERSION), 0)

    assert rewrite_api_versions(refusal, 5, ApiPolicy(own_resources=True)) == refusal

"""ApiVersions through a pair."""

from __future__ import annotations

import pytest

from odradek.gateway.request_heads import starts_well
from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from support.gateway_pair import Through, bare, request, response


def test_the_request_passes_and_names_the_software() -> None:
    through = Through()
    message = request(
        ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.16.0"), 3, 1
    )

    through.send(message)

    assert through.sent == message
    assert (through.identity.software_name, through.identity.software_version) == ("librdkafka", "2.16.0")


def test_text_that_is_not_utf_8_passes_as_it_is() -> None:
    through = Through()
    message = bare(18, 3, 1, b"\0\x03\xc3A\x02\xff\0", "xyz").replace(b"xyz", b"\xed\xa0\x80")

    through.send(message)

    assert through.sent == message
    assert through.identity.client_id == "\ufffd"
    assert (through.identity.software_name, through.identity.software_version) == ("\ufffdA", "\ufffd")


def test_the_response_offers_telemetry() -> None:
    through = Through()
    through.send(request(ApiVersionsRequest(), 3, 1))
    theirs = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)])

    through.reply(response(theirs, 3, 1))

    telemetry = [ApiVersion(api_key=key, min_version=0, max_version=0) for key in (71, 72)]
    ours = ApiVersionsResponse(api_keys=[*theirs.api_keys, *telemetry])
    assert through.received == response(ours, 3, 1)


@pytest.mark.parametrize("version", [-32_768, -1, 6, 100, 101, 32_767])
def test_an_unknown_version_is_answered_here(version: int) -> None:
    through = Through()
    frame = bare(18, version, 77, b"\0whatever")

    assert starts_well(frame, len(frame))
    through.send(frame)

    ours = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=5)])
    assert through.received == response(ours, 0, 77)
    assert through.sent == b""
    assert through.cause is None


def test_a_client_that_expects_another_node_is_counted() -> None:
    for expected, misrouted in ((1, 0), (2, 1), (-1, 0)):
        through = Through(node_id=1)

        through.send(request(ApiVersionsRequest(node_id=expected, cluster_id="c"), 5, 1))

        assert through.path.meter.misrouted == misrouted


def test_a_pair_of_the_bootstrap_address_is_never_misrouted() -> None:
    through = Through()

    through.send(request(ApiVersionsRequest(node_id=1), 5, 1))

    assert through.path.meter.misrouted == 0


def test_a_request_that_is_too_large_closes() -> None:
    through = Through()

    through.send(bare(18, 3, 1, bytes(10_000)))

    assert through.cause == "bad-request"

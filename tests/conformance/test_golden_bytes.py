"""The codec and Apache Kafka's bytes: every recorded request and answer, decoded and encoded again."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.dispatch.routes import Routes
from odradek.wire.codec import decode, encode
from odradek.wire.header import flexible_request_header, flexible_response_header, read_response_header
from support.golden import GOLDEN, NEWEST, VERSIONS, exchanges, golden_files
from support.headers import peek_api, read_request_header
from support.offenders import offenders

ROUTES = Routes()


READABLE = [path for path in golden_files("*") if path.stem != "describe_configs_v4_null_name"]
"""Without the request that Kafka cannot read either; test_client_metrics_configs_golden replays it."""


def are_the_same_bytes(path: Path) -> None:
    for exchange in exchanges(path):
        key, version = peek_api(exchange.request)
        route = ROUTES[key]
        if version not in route.request.VERSIONS:
            continue
        _, start = read_request_header(exchange.request, 0, flexible_request_header(route.request, version))
        request = decode(route.request, version, exchange.request, start)
        assert encode(request, version) == exchange.request[start:], exchange.label
        if exchange.response is None:
            continue
        _, body = read_response_header(
            exchange.response, 0, flexible_response_header(route.response, version)
        )
        response = decode(route.response, version, exchange.response, body)
        assert encode(response, version) == exchange.response[body:], exchange.label


def test_decoded_frames_are_encoded_to_the_same_bytes() -> None:
    assert offenders(are_the_same_bytes, READABLE) == {}


def test_every_file_is_in_the_folder_of_a_version_and_the_newest_has_all() -> None:
    scenarios = {
        version: {path.stem for path in golden_files("*", versions=[version])} for version in VERSIONS
    }

    assert {path.name for path in GOLDEN.iterdir()} == set(VERSIONS)
    assert set().union(*scenarios.values()) == scenarios[NEWEST]

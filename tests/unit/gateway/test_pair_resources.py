"""Requests about CLIENT_METRICS resources: the brokers' affair, or the gateway's own."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from odradek.gateway.rewriting.api_versions import ApiPolicy
from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from support.gateway_pair import HEARTBEAT, Through, answer, bare, request

OWN = ApiPolicy(own_resources=True)
METRICS, TOPIC = ResourceType.CLIENT_METRICS, ResourceType.TOPIC


def describe(*types: int) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=each, resource_name="r") for each in types]
    )


def alter(*types: int) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=each, resource_name="r") for each in types]
    )


ABOUT_METRICS = [
    (describe(METRICS), 1),
    (describe(METRICS, METRICS), 4),
    (alter(METRICS), 0),
    (alter(METRICS), 1),
    (ListConfigResourcesRequest(), 0),
    (ListConfigResourcesRequest(resource_types=[METRICS]), 1),
]
ABOUT_OTHERS = [
    (describe(TOPIC), 4),
    (describe(METRICS, TOPIC), 4),
    (describe(), 4),
    (alter(METRICS, TOPIC), 1),
    (alter(), 0),
    (ListConfigResourcesRequest(), 1),
    (ListConfigResourcesRequest(resource_types=[METRICS, TOPIC]), 1),
]


@pytest.mark.parametrize(("message", "version"), ABOUT_METRICS)
def test_a_request_about_own_resources_is_answered_here(message: Any, version: int) -> None:
    through = Through(at_once=True, policy=OWN)
    before = bare(HEARTBEAT, 3, 1)

    for byte in before + request(message, version, 2):
        through.send(bytes([byte]))
    through.reply(answer(1))

    assert through.sent == before
    assert through.received == answer(1) + answer(2, b"local")


@pytest.mark.parametrize(("message", "version"), ABOUT_OTHERS)
def test_a_request_about_other_resources_passes(message: Any, version: int) -> None:
    through = Through(at_once=True, policy=OWN)
    frame = request(message, version, 1)

    through.send(frame)

    assert through.sent == frame


@pytest.mark.parametrize(("message", "version"), ABOUT_METRICS)
def test_resources_of_the_cluster_pass(message: Any, version: int) -> None:
    through = Through(at_once=True)
    frame = request(message, version, 1)

    through.send(frame)

    assert through.sent == frame


def test_a_request_that_makes_no_sense_or_is_too_large_passes() -> None:
    through = Through(policy=OWN)
    garbage = bare(32, 4, 1, b"\0" + b"\xff" * 30)

    through.send(garbage)
    through.send(large := struct.pack(">ihhih", 2 << 20, 44, 1, 2, 0))

    assert through.sent == garbage + large


def test_a_client_that_has_not_authenticated_is_closed() -> None:
    through = Through(policy=OWN, requires_sasl=True)

    through.send(request(alter(METRICS), 1, 1))

    assert through.cause == "unauthenticated"

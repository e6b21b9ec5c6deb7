"""Requests while the metadata file cannot be read: an answer each, and no traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_configs import AlterableConfig as ReplacingConfig
from odradek.wire.messages.alter_configs import AlterConfigsRequest
from odradek.wire.messages.alter_configs import AlterConfigsResource as ReplacedResource
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from support.broker import BrokerClient, make_broker
from support.failing_connection import UnreadableConnection

TOPIC, CLIENT_METRICS, GROUP = 2, 16, 32
STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def client() -> BrokerClient:
    client = BrokerClient(make_broker())
    client.broker.topics.create("t", 1, {})
    unreadable: Any = UnreadableConnection(client.broker.metadata.connection)
    client.broker.metadata.connection = unreadable
    return client


def described(kind: int) -> Callable[[BrokerClient], list[int]]:
    wanted = [DescribeConfigsResource(resource_type=kind, resource_name="t")]
    return lambda client: [
        row.error_code for row in client.send(DescribeConfigsRequest(resources=wanted)).results
    ]


def altered(kind: int, key: str) -> Callable[[BrokerClient], list[int]]:
    change = AlterableConfig(name=key, value="60000")
    resource = AlterConfigsResource(resource_type=kind, resource_name="t", configs=[change])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    return lambda client: [row.error_code for row in client.send(request).responses]


def replaced(client: BrokerClient) -> list[int]:
    change = ReplacingConfig(name="retention.ms", value="60000")
    resource = ReplacedResource(resource_type=TOPIC, resource_name="t", configs=[change])
    return [row.error_code for row in client.send(AlterConfigsRequest(resources=[resource])).responses]


REQUESTS: dict[str, Callable[[BrokerClient], list[int]]] = {
    "describe a topic": described(TOPIC),
    "describe a subscription": described(CLIENT_METRICS),
    "describe a group": described(GROUP),
    "alter a topic": altered(TOPIC, "retention.ms"),
    "alter a subscription": altered(CLIENT_METRICS, "interval.ms"),
    "replace a topic's keys": replaced,
    "list resources": lambda client: [client.send(ListConfigResourcesRequest()).error_code],
    "a producer id": lambda client: [client.send(InitProducerIdRequest(transactional_id=None), 5).error_code],
}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_request_that_needs_the_file_is_a_storage_error(
    client: BrokerClient, caplog: pytest.LogCaptureFixture, request_name: str
) -> None:
    codes = REQUESTS[request_name](client)

    assert codes == [STORAGE]
    assert client.dispatcher.unexpected_errors == 0
    assert [(line.getMessage(), line.exc_info) for line in caplog.records] == [
        ("cannot use the metadata file", None)
    ]

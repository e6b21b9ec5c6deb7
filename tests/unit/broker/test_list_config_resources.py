from __future__ import annotations

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest
from support.broker import BrokerClient, make_broker


def client() -> BrokerClient:
    """Node 5 with two subscriptions and two topics, one of which is configured."""
    broker = make_broker(settings=BrokerSettings(node_id=5))
    for name in ("test1", "test2"):
        broker.metadata.put_resource(ResourceType.CLIENT_METRICS, name, {"metrics": "*"})
    broker.topics.create("plain", 1, {})
    broker.topics.create("configured", 1, {"retention.ms": "1"})
    return BrokerClient(broker)


def test_version_0_lists_the_subscriptions() -> None:
    response = client().send(ListConfigResourcesRequest(), 0)

    assert response.error_code == ErrorCode.NONE
    assert [row.resource_name for row in response.config_resources] == ["test1", "test2"]


def test_without_subscriptions_the_list_is_empty() -> None:
    response = BrokerClient().send(ListConfigResourcesRequest(), 0)

    assert (response.error_code, response.config_resources) == (ErrorCode.NONE, [])


def test_a_bug_is_an_unknown_server_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = client()
    monkeypatch.setattr("odradek.broker.handlers.list_config_resources.names", None)

    response = asking.send(ListConfigResourcesRequest(), 0)

    assert (response.error_code, response.config_resources) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([2], [(2, "configured"), (2, "plain")]),
        ([4], [(4, "5")]),
        ([8], [(8, "5")]),
        ([16], [(16, "test1"), (16, "test2")]),
        ([32], []),
        ([16, 16, 4], [(4, "5"), (16, "test1"), (16, "test2")]),
        ([], [(2, "configured"), (2, "plain"), (4, "5"), (8, "5"), (16, "test1"), (16, "test2")]),
    ],
)
def test_version_1_lists_the_requested_types(types: list[int], expected: list[tuple[int, str]]) -> None:
    response = client().send(ListConfigResourcesRequest(resource_types=types))

    assert [(row.resource_type, row.resource_name) for row in response.config_resources] == expected


@pytest.mark.parametrize("types", [[0], [1], [99], [16, 99], [-1]])
def test_a_type_unknown_to_the_version_refuses_the_whole_request(types: list[int]) -> None:
    response = client().send(ListConfigResourcesRequest(resource_types=types))

    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])

from __future__ import annotations

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from support.broker import BrokerClient, make_broker

ONE_KEY, SEVERAL_KEYS = range(4), range(4, FindCoordinatorRequest.VERSIONS.last + 1)
HERE = (0, 5, "127.0.0.1", 9092)
REFUSED = (ErrorCode.INVALID_REQUEST, -1, "", -1)


@pytest.fixture
def client() -> BrokerClient:
    return BrokerClient(make_broker(settings=BrokerSettings(node_id=5)))


@pytest.mark.parametrize("version", ONE_KEY)
@pytest.mark.parametrize(
    ("kind", "expected"), [(0, HERE), (1, HERE), (2, REFUSED), (3, REFUSED), (-1, REFUSED)]
)
def test_one_key_is_answered_with_this_node(
    client: BrokerClient, version: int, kind: int, expected: tuple[int, int, str, int]
) -> None:
    response = client.send(FindCoordinatorRequest(key="g", key_type=kind), version)

    known = version >= 1  # version 0 asks for groups only
    found = (response.error_code, response.node_id, response.host, response.port)
    assert found == (expected if known else HERE)
    assert response.coordinators == []


@pytest.mark.parametrize("version", SEVERAL_KEYS)
@pytest.mark.parametrize(
    ("kind", "expected"), [(0, HERE), (1, HERE), (2, REFUSED), (3, REFUSED), (127, REFUSED)]
)
def test_several_keys_are_answered_each(
    client: BrokerClient, version: int, kind: int, expected: tuple[int, int, str, int]
) -> None:
    response = client.send(FindCoordinatorRequest(coordinator_keys=["g", "", "g"], key_type=kind), version)

    assert [row.key for row in response.coordinators] == ["g", "", "g"]
    for row in response.coordinators:
        assert (row.error_code, row.node_id, row.host, row.port) == expected
        assert bool(row.error_message) == (kind > 2)  # Kafka has no text for share groups


@pytest.mark.parametrize("version", SEVERAL_KEYS)
def test_an_empty_request_has_an_empty_answer(client: BrokerClient, version: int) -> None:
    response = client.send(FindCoordinatorRequest(coordinator_keys=[]), version)

    assert response.coordinators == []

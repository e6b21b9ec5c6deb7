"""What a window says of a client that shows only later what it is."""

from __future__ import annotations

from odradek.gateway.observation.apis import Role
from odradek.gateway.observation.client_account import ClientAccount
from odradek.gateway.observation.client_report import report
from odradek.gateway.observation.names import PRODUCER
from odradek.telemetry.client_key import ClientKey
from odradek.testing.data_points import data_points

CREATED = PRODUCER + "connection.creation.total"


def told(account: ClientAccount, now_ms: int) -> list[float]:
    """The sums of a window, which ends now."""
    payload = report(account, frozenset({CREATED}), now_ms, now_ms, lambda _: None)
    account.clear(now_ms, now_ms)
    return [] if payload is None else [point.value for point in data_points(payload)]


def test_connections_count_from_before_a_client_has_shown_that_it_produces() -> None:
    key = ClientKey("User:ANONYMOUS", "orders", "10.1.2.3", "aiokafka", "0.12")
    account = ClientAccount(key, bytes(16), 0, 0)
    account.node(-1).connections = 1
    assert told(account, 300) == []
    account.node(1).connections = 2
    assert told(account, 600) == []

    account.role = Role.PRODUCER
    account.node(1).connections = 1
    assert told(account, 900) == [4]
    assert told(account, 1_200) == [0]

"""What members of groups do is told with client, group and reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from conformance.telemetry_broker import TelemetryBroker
from odradek.broker.told_members import expulsion_teller
from odradek.findings.incidents import GROUP_ERRORS, GROUP_JOINS, GROUP_LEAVES, GROUP_REJOINS, LOST
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.goodbyes import Place
from odradek.telemetry.group_incidents import Asked, note_member
from odradek.telemetry.incidents import Incidents
from odradek.telemetry.stuck_members import StuckMembers
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from support.broker import BrokerClient, make_broker

JOIN, HEARTBEAT, LEAVE, CONSUMER = 11, 12, 13, 68
SOMEBODY = ClientKey("User:alice", "app", "127.0.0.1", "", "")


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []
        self.keys: list[ClientKey] = []
        broker = TelemetryBroker()
        self.goodbyes = broker.manager.goodbyes
        self.stuck = StuckMembers(self.add, broker.clock, broker.clock.timer)

    def observes(self, place: Place) -> bool:
        return place.client_id == "observed"

    def add(self, key: ClientKey, metric: str, labels: Mapping[str, str], **_: Any) -> None:
        self.keys.append(key)
        self.told.append((metric, dict(labels)))


def asked(api_key: int, member_id: str = "m", epoch: int = 0, reason: str | None = None) -> Asked:
    return Asked(api_key=api_key, group_id="g", member_id=member_id, epoch=epoch, reason=reason)


@pytest.mark.parametrize(
    ("request_", "code", "told"),
    [
        (asked(JOIN, member_id=""), ErrorCode.MEMBER_ID_REQUIRED, (GROUP_JOINS, {})),
        (asked(JOIN, member_id=""), ErrorCode.NONE, (GROUP_JOINS, {})),
        (asked(CONSUMER), ErrorCode.NONE, (GROUP_JOINS, {})),
        (asked(CONSUMER, epoch=-2), ErrorCode.NONE, (GROUP_LEAVES, {"reason": ""})),
        (asked(LEAVE, reason="closed (7)"), ErrorCode.NONE, (GROUP_LEAVES, {"reason": "closed"})),
        (
            asked(JOIN, reason="cached metadata has changed from (version3: {a=1}) at the beginning"),
            ErrorCode.NONE,
            (GROUP_REJOINS, {"reason": "cached metadata has changed from"}),
        ),
        (
            asked(JOIN),
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            (GROUP_ERRORS, {"api": "JoinGroup", "error": "INCONSISTENT_GROUP_PROTOCOL"}),
        ),
        (
            asked(HEARTBEAT),
            ErrorCode.FENCED_INSTANCE_ID,
            (GROUP_ERRORS, {"api": "Heartbeat", "error": "FENCED_INSTANCE_ID"}),
        ),
    ],
)
def test_a_member_is_told(request_: Asked, code: int, told: tuple[str, dict[str, str]]) -> None:
    heard = Heard()

    note_member(cast(Incidents, heard), SOMEBODY, request_, code, "a")

    assert heard.told == [(told[0], {"group": "g", **told[1]})]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (asked(HEARTBEAT), ErrorCode.NONE),
        (asked(HEARTBEAT), ErrorCode.REBALANCE_IN_PROGRESS),
        (asked(HEARTBEAT), ErrorCode.NOT_COORDINATOR),
        (asked(HEARTBEAT), ErrorCode.UNKNOWN_MEMBER_ID),
        (asked(LEAVE), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (asked(JOIN), ErrorCode.NONE),
        (asked(JOIN, reason="need to re-join with the given member-id: m"), ErrorCode.NONE),
        (asked(CONSUMER, epoch=7), ErrorCode.NONE),
    ],
)
def test_what_every_member_does_is_not_told(request_: Asked, code: int) -> None:
    heard = Heard()

    note_member(cast(Incidents, heard), SOMEBODY, request_, code, "a")

    assert heard.told == []


def test_a_host_tells_its_members() -> None:
    client, heard = BrokerClient(make_broker()), Heard()
    client.broker.incidents = cast(Incidents, heard)
    protocols = [JoinGroupRequestProtocol(name="range")]
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols
    )
    client.send(join, 9)
    client.send(JoinGroupRequest(group_id="g", member_id="nobody", protocol_type="connect"), 9)
    leaving = MemberIdentity(member_id="nobody", reason="the consumer is being closed")
    client.send(LeaveGroupRequest(group_id="g", members=[leaving]), 5)

    assert heard.told == [
        (GROUP_JOINS, {"group": "g"}),
        (GROUP_ERRORS, {"group": "g", "api": "JoinGroup", "error": "INVALID_SESSION_TIMEOUT"}),
        (GROUP_LEAVES, {"group": "g", "reason": "the consumer is being closed"}),
    ]
    assert {key.client_id for key in heard.keys} == {client.client_id}


def test_a_session_that_ends_is_a_lost_client() -> None:
    heard = Heard()

    expulsion_teller(cast(Incidents, heard), list)("app", "/10.0.0.7")

    assert heard.told == [(LOST, {"why": "session"})]
    assert (heard.keys[0].client_id, heard.keys[0].address) == ("app", "10.0.0.7")


@pytest.mark.parametrize(
    "client_id", ["back again", "app-1-StreamThread-2-consumer", "producer-1", "observed", "left"]
)
def test_a_session_that_ends_is_not_told_of_a_client_that_is_back_or_followed(client_id: str) -> None:
    heard, broker = Heard(), TelemetryBroker()
    heard.goodbyes = broker.manager.goodbyes
    broker.get(connection_id="a")
    assert heard.goodbyes.follows(Place("producer-1", "127.0.0.1"))
    heard.goodbyes.has_ended(Place("left", "127.0.0.1"))

    expulsion_teller(cast(Incidents, heard), lambda: [("back again", "/127.0.0.1")])(client_id, "/127.0.0.1")

    assert heard.told == []

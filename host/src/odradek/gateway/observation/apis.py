"""Kafka's APIs as the observation sees them: names, roles, and the first fields of responses."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntFlag
from functools import cache
from itertools import takewhile
from typing import Any, Final

from odradek.wire.header import flexible_response_header
from odradek.wire.layout import layout
from odradek.wire.openings import OTHER_RESPONSES
from odradek.wire.walk_source import Walk, Wanted, compile_walk

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
OFFSET_COMMIT: Final = 8
JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18
INIT_PRODUCER_ID: Final = 22
SASL_AUTHENTICATE: Final = 36
CONSUMER_GROUP_HEARTBEAT: Final = 68
GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
PUSH_TELEMETRY: Final = 72
SHARE_FETCH: Final = 78

OPENING: Final = frozenset({SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})
"""Sent before it is known who the client is."""
TELEMETRY: Final = frozenset({GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY})
COORDINATION: Final = frozenset({JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT})
"""The APIs of group members, whose requests and responses are read."""
LOOKED_AT: Final = COORDINATION | {INIT_PRODUCER_ID}
"""The APIs whose requests are read, beside Produce."""
PASSING_LOOKED_AT: Final = LOOKED_AT | {FETCH}
"""The same in a gateway. A host knows what it is asked for."""


class Role(IntFlag):
    """The kinds of client that have standard metrics. Others are admin clients and share consumers."""

    NONE = 0
    PRODUCER = 1
    CONSUMER = 2


ROLES: Final = {
    PRODUCE: Role.PRODUCER,
    INIT_PRODUCER_ID: Role.PRODUCER,
    FETCH: Role.CONSUMER,
    JOIN_GROUP: Role.CONSUMER,
    CONSUMER_GROUP_HEARTBEAT: Role.CONSUMER,
}
"""The role of a client that sends requests of an API. A consumer without a group sends Fetch only."""


OPENING_FIELDS: Final = ("throttle_time_ms", "error_code")


@cache
def opening_walk(response: type[Any], version: int) -> Walk | None:
    """A walk that reads the throttle time and the error code, if one or both open a declared response."""
    shape = layout(response, version)
    opening = takewhile(lambda field: field.name in OPENING_FIELDS, shape.fields)
    names = [field.name for field in opening]
    if not names:
        return None
    wanted = Wanted(reads=OPENING_FIELDS, header=flexible_response_header(response, version), last=names[-1])
    return compile_walk(shape, wanted, f"{response.__name__} v{version} opening")


class Openings:
    """The walks over the first fields of the responses of all APIs.

    Args:
        responses: The declared responses, by API key.
    """

    def __init__(self, responses: Mapping[int, type[Any]]) -> None:
        self.responses = responses

    def find(self, api_key: int, version: int) -> Walk | None:
        """The walk over a response; None if it has neither field there, or is not known."""
        response = self.responses.get(api_key) or OTHER_RESPONSES.get(api_key)
        if response is None or version not in response.VERSIONS:
            return None
        return opening_walk(response, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable

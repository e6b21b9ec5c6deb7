"""Kafka's APIs as the observation sees them: names, roles, and where responses have their errors."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntFlag
from functools import cache
from typing import Any, Final, NamedTuple

from odradek.wire.errors import WireError
from odradek.wire.layout import layout
from odradek.wire.types import Scalar

PRODUCE: Final = 0
FETCH: Final = 1
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


class Place(NamedTuple):
    """The place of the throttle time, the top-level error code, or both in a row, in a response."""

    offset: int
    """From the correlation id on."""
    read: Callable[[bytes, int], tuple[int, ...]]
    """Unpacks the fields."""
    quiet: tuple[int, ...]
    """The result of ``read`` if there is nothing to note."""
    throttle: int | None
    """Index of the throttle time; None if it has no fixed place."""
    error: int | None
    """Index of the error code; None if it has no fixed place."""


def place_of(fields: str, flexible: bool) -> Place:
    """The place of fields that open a response: ``t`` is the throttle time, ``e`` the error code."""
    shape = struct.Struct(">" + fields.replace("t", "i").replace("e", "h"))
    throttle = fields.find("t") if "t" in fields else None
    error = fields.find("e") if "e" in fields else None
    return Place(5 if flexible else 4, shape.unpack_from, (0,) * len(fields), throttle, error)


OTHERS: Final = {key: place_of("te", True) for key in (76, 78, 79, 88)}
"""Share groups and Streams groups, which the host itself does not serve."""
OPENING_FIELDS: Final = {"throttle_time_ms": "t", "error_code": "e"}


@cache
def place(response: type[Any], version: int) -> Place | None:
    """The place in a version of a declared response; None if the version has neither field at its beginning,
    or is not known.
    """
    try:
        shape = layout(response, version)
    except WireError:
        return None
    fields = ""
    for field in shape.fields[:2]:
        mark = OPENING_FIELDS.get(field.name) if isinstance(field.kind, Scalar) else None
        if mark is None:
            break
        fields += mark
    # Clients read the ApiVersions response before they know any version: its header has no tags.
    flexible = shape.flexible and response.API_KEY != API_VERSIONS
    return place_of(fields, flexible) if fields else None


class Places:
    """The places in the responses of all APIs.

    Args:
        responses: The declared responses, by API key.
    """

    def __init__(self, responses: Mapping[int, type[Any]]) -> None:
        self.responses = responses

    def find(self, api_key: int, version: int) -> Place | None:
        """The place in a response; None if there is none, or the response is not known."""
        response = self.responses.get(api_key)
        if response is None:
            return OTHERS.get(api_key)
        return place(response, version)  # type: ignore[arg-type]  # mypy doubts that classes are hashable

"""Responses of APIs that the host does not serve, as far as a gateway reads them.

Source: the schemas of Kafka 4.3. What follows the declared fields is ignored, as after any message, so these
declarations hold for all versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from odradek.wire.types import Int16, Int32, Int64, Message, between, since

MOST_VERSIONS: Final = 9
"""No API here has so many. A bound, because each version that is met is compiled."""


class ErrorOpening(Message, api_key=-1, versions=between(0, MOST_VERSIONS), flexible=since(0)):
    """The throttle time and the error."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0


class TokenResponse(Message, api_key=-1, versions=between(0, MOST_VERSIONS), flexible=since(2)):
    """A renewed or expired delegation token."""

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0


OTHER_RESPONSES: Final[Mapping[int, type[Any]]] = {
    **dict.fromkeys((39, 40), TokenResponse),
    **dict.fromkeys((64, 80, 81, 82), ErrorOpening),
}
"""By API key."""

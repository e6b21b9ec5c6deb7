"""Responses of APIs that the host does not serve, as far as a gateway reads them.

Source: the schemas of Kafka 4.3. What follows the declared fields is ignored, as after any message, so these
declarations hold for all versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from odradek.wire.share_responses import ShareAcknowledgeResponse, ShareFetchResponse
from odradek.wire.types import Int16, Int32, Int64, Versions, between, since

MOST_VERSIONS: Final = 9
"""No API here has so many. A bound, because each version that is met is compiled."""


@dataclass(slots=True, kw_only=True)
class ThrottleOpening:
    """The throttle time."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[Versions] = between(0, MOST_VERSIONS)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0


@dataclass(slots=True, kw_only=True)
class ErrorOpening(ThrottleOpening):
    """The throttle time and the error."""

    error_code: Int16 = 0


@dataclass(slots=True, kw_only=True)
class TokenResponse:
    """A renewed or expired delegation token."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[Versions] = between(0, MOST_VERSIONS)
    FLEXIBLE: ClassVar[Versions] = since(2)

    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0


OTHER_RESPONSES: Final[Mapping[int, type[Any]]] = {
    **dict.fromkeys((39, 40), TokenResponse),
    **dict.fromkeys((64, 76, 80, 81, 82, 88, 91, 92), ErrorOpening),
    **dict.fromkeys((77, 89, 90), ThrottleOpening),
    ShareFetchResponse.API_KEY: ShareFetchResponse,
    ShareAcknowledgeResponse.API_KEY: ShareAcknowledgeResponse,
}
"""By API key."""

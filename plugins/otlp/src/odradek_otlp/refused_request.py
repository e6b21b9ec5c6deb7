"""The reasons why a request of a sender is refused, with the answers over HTTP and gRPC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

RETRY_AFTER_S: Final = 5
"""The wait that a sender is asked for before it repeats a request."""
INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, UNIMPLEMENTED, UNAVAILABLE, UNAUTHENTICATED = (
    3, 4, 8, 12, 14, 16,
)  # fmt: skip
"""Status codes of gRPC."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A kind of refusal."""

    outcome: str
    """Label of the metric; the key of the setting if a bound is reached."""
    status: int
    """Of HTTP."""
    code: int
    """Of gRPC."""
    is_temporary: bool = False
    """The sender is asked to repeat the request."""


NO_SUCH_PATH: Final = Reason("unsupported", 404, UNIMPLEMENTED)
NOT_POST: Final = Reason("unsupported", 405, UNIMPLEMENTED)
MEDIA_TYPE: Final = Reason("unsupported", 415, INVALID_ARGUMENT)
MALFORMED: Final = Reason("malformed", 400, INVALID_ARGUMENT)
NO_TOKEN: Final = Reason("unauthenticated", 401, UNAUTHENTICATED)
TOKENS_UNREADABLE: Final = Reason("token.file", 503, UNAVAILABLE, is_temporary=True)
TOO_LARGE: Final = Reason("request.max.bytes", 413, RESOURCE_EXHAUSTED)
JSON_TOO_LARGE: Final = Reason("json.max.bytes", 413, RESOURCE_EXHAUSTED)
INCOMPLETE: Final = Reason("incomplete", 400, INVALID_ARGUMENT)
LATE: Final = Reason("request.timeout.ms", 408, DEADLINE_EXCEEDED)
TOO_MANY: Final = Reason("requests.max", 429, RESOURCE_EXHAUSTED, is_temporary=True)
NO_MEMORY: Final = Reason("buffer.max.bytes", 503, UNAVAILABLE, is_temporary=True)
NO_ROOM: Final = Reason("no-room", 503, UNAVAILABLE, is_temporary=True)


class RefusedRequest(Exception):
    """A request that is not accepted.

    Args:
        reason: Decides the answer.
        text: For the sender.
    """

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Limit(NamedTuple):
    """A limit of the size of a request, sent or decompressed."""

    most_bytes: int
    reason: Reason
    setting: str

    def exceeded(self, when: str = "") -> RefusedRequest:
        """The refusal of a larger request."""
        return RefusedRequest(self.reason, f"larger than {self.setting} ({self.most_bytes}){when}")

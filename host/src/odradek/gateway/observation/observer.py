"""The interface between a pair and the observation of its traffic."""

from __future__ import annotations

from typing import Protocol

from odradek.gateway.pair_identity import PairIdentity

HEAD_BYTES = 512
"""At most this much of a frame is shown to an observer, counted after the frame's length."""


class Observer(Protocol):
    """Sees the frames of every pair. A pair without observation calls nothing."""

    def opened(self, pair: PairIdentity) -> None:
        """A client has connected and sent its first byte."""

    def request(self, pair: PairIdentity, api_key: int, version: int, size: int, head: bytes) -> None:
        """A request has passed; `size` is its int32 length, `head` its first bytes after the length."""

    def response(
        self, pair: PairIdentity, api_key: int, version: int, size: int, latency_ns: int, head: bytes,
        error_code: int | None, throttle_ms: int | None,
    ) -> None:  # fmt: skip
        """A response has passed; `head` starts at its correlation id."""

    def whole_request(self, pair: PairIdentity, api_key: int, version: int, frame: bytes) -> None:
        """A request of an API in `WHOLE_REQUESTS` has passed; the frame is without its length."""

    def whole_response(self, pair: PairIdentity, api_key: int, version: int, frame: bytes) -> None:
        """A response of an API in `WHOLE_RESPONSES` has passed; the frame is without its length."""

    def closed(self, pair: PairIdentity, by_client: bool, outstanding: int) -> None:
        """The pair has closed, with this many requests unanswered."""


WHOLE_REQUESTS = frozenset[int]()
WHOLE_RESPONSES = frozenset[int]()

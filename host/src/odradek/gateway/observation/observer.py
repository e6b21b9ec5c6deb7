"""The interface between a pair and the observation of its traffic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, Protocol

from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.produce_beginning import OfTopic

CloseCause = Literal["client", "broker", "gateway"]
"""The side that ended a connection."""

HEAD_BYTES: Final = 64
"""So much of a response is shown to an observer, from the correlation id on; all of a shorter one."""
LONG_HEADS: Final = {0: 65_536, 3: 65_536, 14: 65_536, 68: 65_536}
"""The same for Produce, Metadata, SyncGroup and ConsumerGroupHeartbeat, by API key."""


class PairObserver(Protocol):
    """Sees the frames of one pair."""

    def produce(
        self,
        version: int,
        acks: int,
        count: int,
        size: int,
        records: int,
        batches: int,
        batch_bytes: int,
        in_flight: int,
    ) -> None:
        """Take note of Produce requests that arrived together.

        Args:
            version: Version of the requests.
            acks: Their field acks.
            count: How many they are.
            size: The bytes of all of them, with their lengths.
            records: The records of all batches that have arrived.
            batches: How many batches these are.
            batch_bytes: The bytes of these, with their headers.
            in_flight: As `requests`.
        """

    def wrote(self, version: int, topics: Iterable[OfTopic]) -> None:
        """Take note of the topics of the requests of the last `produce` that have arrived."""

    def writes(self, version: int, topic: tuple[bytes, bool] | None) -> None:
        """Take note of the first topic of the request of the next `batches`, and whether it is the only one.
        None: it has none, or that has not arrived.
        """

    def batches(self, records: int, batches: int, batch_bytes: int) -> None:
        """Take note of the batches of a Produce request that arrived in pieces, when all have come."""

    def look(self, api_key: int, version: int, head: bytes, at: int) -> Callable[[memoryview], None] | None:
        """Look at a request of `apis.PASSING_LOOKED_AT`. Called once for each, when its header has arrived.

        Args:
            api_key: The API.
            version: Version of the request.
            head: Bytes that contain the beginning of the frame: the received chunk itself.
            at: Position in ``head`` of the API key. More than this frame may follow.

        Returns:
            What takes the rest of the frame as it comes; None if nobody wants it.
        """

    def requests(self, api_key: int, version: int, count: int, size: int, in_flight: int) -> None:
        """Take note of requests that arrived together, with no other one between them.

        Args:
            api_key: The API, including those that the gateway answers.
            version: Version of the requests.
            count: How many they are.
            size: The bytes of all of them, with their lengths.
            in_flight: Requests of the pair without a response, with these if they get responses.
        """

    def responses(self, api_key: int, count: int, size: int, latency_ns: int) -> None:
        """Take note of responses whose last bytes were passed to the client together.

        Args:
            api_key: The API of the requests, which arrived together, too.
            count: How many responses.
            size: The bytes of all of them, with their lengths, as the broker sent them.
            latency_ns: Time from the first bytes of the requests to now.
        """

    def outcome(
        self,
        api_key: int,
        version: int,
        size: int,
        head: bytes,
        at: int,
        error_code: int | None = None,
        throttle_ms: int | None = None,
    ) -> None:
        """Take note of what a response says.

        Called once for each, unless it has the usual form, which has no error and no throttle time.

        Args:
            api_key: The API of the request.
            version: Version of the request.
            size: The frame's int32 length, as the broker sent it.
            head: Bytes that contain the first `HEAD_BYTES` of the frame, or more for `LONG_HEADS`, as the
                broker sent them. A pair that gets them in pieces keeps a copy while it passes them on.
            at: Position in ``head`` of the correlation id.
            error_code: The top-level error that a rewriter has read; None if there was no rewriter.
            throttle_ms: As ``error_code``.
        """

    def closed(self, by: CloseCause, outstanding: Iterable[int], in_order: bool) -> None:
        """Take note of the end of the pair.

        Args:
            by: The side that ended it.
            outstanding: The API keys of the requests without a response.
            in_order: The client ended it, and did not wait for an answer.
        """


class Observer(Protocol):
    """Sees all pairs. A gateway that does not observe has none, and its pairs call nothing."""

    def opened(self, identity: PairIdentity) -> PairObserver:
        """The observer of a new connection. It reads ``identity`` again from time to time."""

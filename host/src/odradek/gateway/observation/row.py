"""Sums of the requests of one API that a client sent to one node in one window."""

from __future__ import annotations

from typing import Final

from odradek.gateway.observation.apis import FETCH, PRODUCE, SHARE_FETCH
from odradek.wire.walk_source import Walk

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
"""Upper bounds of the latency histogram's buckets, inclusive; a last bucket has everything above."""
BOUNDS_NS: Final = tuple(1_000_000 * bound for bound in BOUNDS_MS)
NO_VERSION: Final = -1

DISCONNECTED: Final = "disconnected"
"""The error of a request whose connection ended before its response."""
FETCHES: Final = frozenset({FETCH, SHARE_FETCH})


class Produced:
    """Sums of some Produce requests."""

    __slots__ = ("acks0", "batches", "bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.batches = 0
        self.bytes = 0
        """Batches with their headers, compressed as sent."""
        self.acks0 = 0
        """Requests without a response."""

    def add(self, records: int, batches: int, size_bytes: int) -> None:
        """Add batches."""
        self.records += records
        self.batches += batches
        self.bytes += size_bytes

    def merge(self, other: Produced) -> None:
        """Add the sums of another object."""
        self.add(other.records, other.batches, other.bytes)
        self.acks0 += other.acks0


class Row:
    """The sums, changed in place by `PairAccount`."""

    __slots__ = (
        "api_key", "buckets", "errors", "latency_max_ns", "latency_ns", "opening",
        "opening_version", "produced", "request_bytes", "requests", "response_bytes", "responses",
        "throttle_max_ms", "throttle_ms", "version",
    )  # fmt: skip

    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        self.requests = 0
        self.request_bytes = 0
        """Frames with their lengths."""
        self.responses = 0
        self.response_bytes = 0
        self.latency_ns = 0
        self.latency_max_ns = 0
        self.buckets = [0] * (len(BOUNDS_NS) + 1)
        self.errors: dict[int | str, int] = {}
        """Responses, or partitions of Produce responses, by error code; and `DISCONNECTED`."""
        self.throttle_ms = 0
        self.throttle_max_ms = 0
        self.version = NO_VERSION
        """Of the last request."""
        self.opening: Walk | None = None
        """Reads the first fields of responses."""
        self.opening_version = NO_VERSION
        self.produced = Produced() if api_key == PRODUCE else None

    def fail(self, error: int | str, times: int = 1) -> None:
        """Count an error."""
        self.errors[error] = self.errors.get(error, 0) + times

    def throttle(self, throttle_ms: int) -> None:
        """Count a throttle time that the broker has imposed."""
        self.throttle_ms += throttle_ms
        if throttle_ms > self.throttle_max_ms:
            self.throttle_max_ms = throttle_ms

    def merge(self, other: Row) -> None:
        """Add the sums of another row of the same API."""
        self.requests += other.requests
        self.request_bytes += other.request_bytes
        self.responses += other.responses
        self.response_bytes += other.response_bytes
        self.latency_ns += other.latency_ns
        self.latency_max_ns = max(self.latency_max_ns, other.latency_max_ns)
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        for error, times in other.errors.items():
            self.fail(error, times)
        self.throttle_ms += other.throttle_ms
        self.throttle_max_ms = max(self.throttle_max_ms, other.throttle_max_ms)
        self.version = other.version
        if self.produced is not None and other.produced is not None:
            self.produced.merge(other.produced)

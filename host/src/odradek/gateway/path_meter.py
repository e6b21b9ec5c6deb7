"""The counters of a gateway's data path."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from odradek.gateway.pair_failure import Cause
from odradek.metrics.bucket_counts import BucketCounts

SAMPLED: Final = 63
"""A piece is timed if its number has none of these bits: one in 64."""
REQUEST, RESPONSE, HELD = "request", "response", "held"
"""A piece that a client or a broker has sent, or a response that was held back."""
ADDED_S: Final = (
    0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0
)  # fmt: skip


@dataclass(slots=True, eq=False)
class PathMeter:
    """Counts since the start, over all pairs."""

    opened: int = 0
    """Pairs whose first request was valid."""
    closed: Counter[Cause] = field(default_factory=Counter)
    client_bytes: int = 0
    """Read from clients."""
    upstream_bytes: int = 0
    """Read from brokers."""
    requests: Counter[int] = field(default_factory=Counter)
    """By API key; SASL tokens without a header are not counted."""
    rewritten: Counter[int] = field(default_factory=Counter)
    """Responses that passed a rewriter, by API key."""
    acks0: int = 0
    """Produce requests without a response."""
    misrouted: int = 0
    """Clients that expected another node than the one of the address they dialed."""
    in_flight_pauses: int = 0
    """How often a client was not read because it had too many requests outstanding."""
    chunks: int = 0
    """Pieces that were read, of both directions; `SAMPLED` says which are timed."""
    added: dict[str, BucketCounts] = field(
        default_factory=lambda: {each: BucketCounts(ADDED_S) for each in (REQUEST, RESPONSE, HELD)}
    )
    """Time between reading and writing, in seconds."""
    internal_errors: Counter[int] = field(default_factory=Counter)
    """Bugs in rewriters, by API key."""

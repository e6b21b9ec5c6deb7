"""The counters of a gateway's data path."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from odradek.gateway.pair_failure import Cause


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
    local_answers: int = 0
    rewritten: Counter[int] = field(default_factory=Counter)
    """Responses that passed a rewriter, by API key."""
    acks0: int = 0
    """Produce requests without a response."""
    misrouted: int = 0
    """Clients that expected another node than the one of the address they dialed."""
    in_flight_pauses: int = 0
    """How often a client was not read because it had too many requests outstanding."""
    answer_waits: int = 0
    """How often a broker was not read because a local answer was not ready."""
    internal_errors: Counter[int] = field(default_factory=Counter)
    """Bugs in rewriters, by API key."""

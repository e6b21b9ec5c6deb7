"""The shared state of the two directions of a pair."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntFlag, auto
from typing import Final, Protocol

from odradek.gateway.addresses import Addresses
from odradek.gateway.data_path import DataPath
from odradek.gateway.observation.observer import PairObserver
from odradek.gateway.pair_failure import Cause, PairFailure
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.sasl_watch import SaslWatch

SMALLEST: Final = 4
"""The shortest response: its correlation id."""
LARGE_FRAME_BYTES: Final = 16_384
"""From this size on, the memory of a frame that is held back is counted."""


class Pause(IntFlag):
    """The reasons not to read a connection of a pair. It is read while there is none."""

    IN_FLIGHT = auto()
    """The client has too many requests outstanding."""
    LOCAL_ANSWER = auto()
    """A local answer is not ready, and later responses wait for it."""
    PEER_IS_SLOW = auto()
    """The other end does not take what was read."""
    DIALING = auto()
    """The broker is being dialed."""
    MEMORY = auto()
    """All pairs together hold too much."""
    THROTTLED = auto()
    """A quota of the gateway is exceeded."""


class End(Protocol):
    """One connection of a pair."""

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes."""

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        """Send several pieces."""

    def hold(self, reason: int) -> None:
        """Stop reading, until each reason to do so is gone. A few bytes may still arrive."""

    def release(self, reason: int) -> None:
        """Take a reason away."""

    def holds(self, held_bytes: int, missing_bytes: int) -> None:
        """A frame that was read here is held back, and so much of it is missing; 0 bytes: no longer."""


class LocalAnswer:
    """The slot of a request that the gateway answers itself."""

    __slots__ = ("close", "frame")

    def __init__(self, frame: bytes | None = None, close: PairFailure | None = None) -> None:
        self.frame = frame
        """The response without its length; None until it is ready, empty to close the pair."""
        self.close = close
        """Why the pair closes after this answer."""


RAW_TOKEN: Final = LocalAnswer(b"")
"""Marks a SASL token without a header: its answer comes from the broker, and has no correlation id."""


Burst = tuple[int, int, int, LocalAnswer | None]
"""Requests of one API and version that arrived together, with no other one between them: API key, version,
monotonic time in ns; and the slot of the local answer, if it is one request that has one. Their responses are
treated alike, and both are counted together."""
Outstanding = tuple[int, Burst]
"""A request that waits for its response: its correlation id, and those that it arrived with."""


def nothing() -> None:
    """No answer is awaited."""


@dataclass(slots=True, eq=False)
class PairState:
    """The shared state of the two directions of a pair."""

    path: DataPath
    addresses: Addresses
    """Of the listener that the client is connected to."""
    identity: PairIdentity
    client: End
    upstream: End
    sasl: SaslWatch
    observer: PairObserver | None = None
    outstanding: deque[Outstanding] = field(default_factory=deque)
    """Requests in the order in which the client sent them, which is the order of their responses."""
    answer_ready: Callable[[], None] = nothing
    """Called when a local answer is ready; until the pair closes, which is what it refers to."""
    paused: bool = False
    """The client is not read because it has too many requests outstanding."""


def unexpected(size: int, correlation_id: int, oldest: Outstanding | None) -> PairFailure:
    """The failure of a response that is too short, or that no request waits for."""
    if size < SMALLEST:
        return PairFailure(Cause.MALFORMED_RESPONSE, f"a response of {size} bytes")
    expected = (
        "no response" if oldest is None else f"the response to request {oldest[0]} of API {oldest[1][0]}"
    )
    return PairFailure(Cause.DESYNC, f"response to request {correlation_id}, expected {expected}")

"""The interface between a pair and the telemetry of the gateway."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from odradek.gateway.pair_identity import PairIdentity


class LocalAnswers(Protocol):
    """Answers the requests that are never forwarded: GetTelemetrySubscriptions and PushTelemetry."""

    def answer(self, frame: bytes, peer: PairIdentity, done: Callable[[bytes], None]) -> None:
        """Answer one request frame, without its length.

        `done` takes the response frame without its length, at once or later. An empty frame closes the pair.
        """

    def closed(self, peer: PairIdentity) -> None:
        """The pair has ended. Answers that are not ready are dropped: their `done` is not called."""

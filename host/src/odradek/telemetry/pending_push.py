"""A push that passed the gate and whose payload is being opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.payload import PayloadWork
from odradek.wire.messages.push_telemetry import PushTelemetryResponse


@dataclass(frozen=True, slots=True)
class PendingPush:
    """A push whose payload is too large for the event loop."""

    work: PayloadWork
    """May be pickled; ``work.run()`` takes milliseconds."""
    finish: Callable[[bytes | BaseException], PushTelemetryResponse | AcceptedPush]
    """Call once, on the event loop, with what ``run`` returned or raised."""

"""A push that passed the gate and whose payload is being opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.plugin.context import RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.payload import PayloadWork
from odradek.wire.messages.push_telemetry import PushTelemetryResponse


class Opening(NamedTuple):
    """Whose payload is being opened."""

    instance: ClientMetricsInstance
    context: RequestContext
    terminating: bool
    codec: int
    started_ns: int


@dataclass(frozen=True, slots=True)
class PendingPush:
    """A push whose payload is too large for the event loop."""

    work: PayloadWork
    """May be pickled; ``work.run()`` takes milliseconds."""
    finish: Callable[[bytes | BaseException], PushTelemetryResponse | AcceptedPush]
    """Call once, on the event loop, with what ``run`` returned or raised."""

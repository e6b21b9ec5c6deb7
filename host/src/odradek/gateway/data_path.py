"""The shared state of all pairs of a gateway: limits, policy, counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.gateway.observation.observer import Observer
from odradek.gateway.path_meter import PathMeter
from odradek.gateway.path_quotas import PathQuotas
from odradek.gateway.rewriting.api_versions import ApiPolicy
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.gateway.sasl_watch import LoginRefused, nobody_asks
from odradek.gateway.telemetry_answers import TelemetryAnswers

TELEMETRY_HEADER_BYTES = 1024
"""How much longer than its metrics a push may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLimits:
    """The bounds of one pair."""

    max_request_bytes: int = 104_857_600
    """`socket.request.max.bytes`."""
    max_push_bytes: int = (1 << 20) + TELEMETRY_HEADER_BYTES
    """The largest frame of PushTelemetry."""
    max_token_bytes: int = 524_288
    """The largest SaslAuthenticate request whose token is looked at, as `sasl.server.max.receive.size`."""
    most_in_flight: int = 1000
    """`gateway.in.flight.max`."""
    hold: HoldLimits = field(default_factory=HoldLimits)


@dataclass(slots=True, eq=False, kw_only=True)
class DataPath:
    """The shared state of all pairs. Fields change at run time; a pair reads them when it needs them."""

    monotonic_ns: Callable[[], int]
    limits: PathLimits
    meter: PathMeter
    policy: ApiPolicy
    """Which APIs are offered."""
    answers: TelemetryAnswers | None = None
    """Answers telemetry; None if it is passed on to the broker."""
    observer: Observer | None = None
    """Sees the frames of pairs that open from now on."""
    quotas: PathQuotas | None = None
    """Charge the pairs that open from now on, if a client has a quota."""
    subject_claim: str = "sub"
    requires_sasl: bool = False
    """The brokers' listener has SASL, so that no client is trusted before it has authenticated."""
    login_refused: LoginRefused = nobody_asks
    """Told of clients whose credentials the broker has refused."""
    on_internal_error: Callable[[int], None] = lambda _api_key: None
    """Called with the API key after a bug in a rewriter has closed a pair."""

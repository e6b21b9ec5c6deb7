"""The shared state of a gateway's listeners and pairs, made from the configuration."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from odradek.gateway.data_path import TELEMETRY_HEADER_BYTES, PathLimits
from odradek.gateway.gateway_settings import REUSE_PORT, WORKERS
from odradek.gateway.rewriting.rewriter import HoldLimits
from odradek.net.listener_settings import LISTENERS, WITH_SASL
from odradek.net.pairs.dialer import Address
from odradek.net.pairs.gateway import Pairs
from odradek.net.pairs.pair_bytes import PairBytes
from odradek.net.pairs.standstills import Standstills
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig
from odradek.programs.gateway_addressing import routings_of
from odradek.waiting.clock import Clock, Timer

LINUX: Final = "linux"


def check_listeners(config: HostConfig) -> None:
    """Check that the listeners are a gateway's.

    Raises:
        ConfigError: One of them ends SASL, or shares a port that is not known, or that only one process gets.
    """
    shared = WORKERS if config.gateway.workers > 1 else REUSE_PORT if config.gateway.reuse_port else None
    if shared is not None and sys.platform != LINUX:
        problem = f"needs Linux: {sys.platform} gives the connections of a shared port to one process only"
        raise ConfigError(shared, problem)
    for address in config.listeners:
        if address.security_protocol in WITH_SASL:
            raise ConfigError(
                LISTENERS,
                f"expected PLAINTEXT or SSL, found {address.security_protocol}: SASL passes through a "
                "gateway to the brokers",
            )
        if config.gateway.reuse_port and not address.port:
            problem = f"expected a port for {address}, because processes can only share a known one"
            raise ConfigError(REUSE_PORT, problem)


def pairs_of(
    config: HostConfig,
    upstream: Sequence[Address],
    tls: ssl.SSLContext | None,
    requires_sasl: bool,
    clock: Clock,
    timer: Timer,
    **more: Any,
) -> Pairs:
    """The shared state of a gateway's listeners and pairs; see `Pairs`.

    Raises:
        ConfigError: The settings of the addresses contradict each other.
    """
    settings = config.gateway
    limits = PathLimits(
        max_request_bytes=config.socket_request_max_bytes,
        max_push_bytes=config.telemetry.telemetry_max_bytes + TELEMETRY_HEADER_BYTES,
        most_in_flight=settings.most_in_flight,
        hold=HoldLimits(response_bytes=settings.hold_bytes),
    )
    frame_bytes = max(settings.hold_bytes, limits.max_push_bytes)
    memory = PairBytes(settings.memory_bytes, config.memory, clock, timer, frame_bytes)
    return Pairs(
        settings,
        limits,
        partial(routings_of, config),
        upstream,
        tls,
        requires_sasl,
        config.oauth.subject_claim,
        clock,
        memory,
        Standstills(settings.upstream_stuck_ms, clock, timer, memory),
        **more,
    )

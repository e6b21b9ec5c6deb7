"""Settings of the observation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.settings.kinds import INT, Choice, Whole
from odradek.settings.setting import setting


class Observe(StrEnum):
    """The clients whose metrics are derived from what they send."""

    SILENT = "silent"
    """Those that push no telemetry."""
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostObservationSettings:
    """Which clients of a host are observed; the bounds are those of `ObservationSettings`."""

    # fmt: off
    observe: Observe = setting(
        "telemetry.observe", Choice({each.value: each for each in Observe}), Observe.NONE,
        "Clients whose metrics `odradek serve` derives from their requests: those that push no telemetry "
        "(`silent`), `all`, or `none`; a gateway has `gateway.observe`.", page="observed-metrics.md",
    )
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSettings:
    """Which clients are observed, and how many."""

    # fmt: off
    observe: Observe = setting(
        "gateway.observe", Choice({each.value: each for each in Observe}), Observe.SILENT,
        "Clients whose metrics the gateway derives from their requests: those that push no telemetry "
        "(`silent`), `all`, or `none`.", page="observed-metrics.md",
    )
    max_clients: int = setting(
        "gateway.observe.clients.max", Whole(INT, 1), 10_000,
        "Observed clients that are remembered; beyond this number the least recently used one is forgotten.",
        unit="clients",
    )
    cardinality: int = setting(
        "gateway.observe.cardinality", Whole(INT, 1), 1_000,
        "Observed client ids of one address; further ones are observed together as the client id `other`.",
        unit="client ids",
    )
    # fmt: on

"""The estimates of changed subscriptions, for hosts that want them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.telemetry_spool import TelemetrySpool
from odradek.programs.config import HostConfig
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.estimate.budgets import EstimateMode
from odradek.waiting.clock import Clock

if TYPE_CHECKING:
    from odradek.broker.subscription_estimates import PointsOffload, SubscriptionEstimates


def estimates_of(
    config: HostConfig,
    telemetry: ClientMetricsManager,
    clock: Clock,
    spool: TelemetrySpool | None,
    offload: PointsOffload,
) -> SubscriptionEstimates | None:
    """The estimates of changed subscriptions; None if they are off."""
    if config.subscription_budgets.mode is EstimateMode.OFF:
        return None
    # Hosts without it start faster.
    from odradek.broker.subscription_estimates import SubscriptionEstimates

    return SubscriptionEstimates(config.subscription_budgets, telemetry, clock, spool, offload)

"""The budgets for the series of subscriptions, and the mode: no estimates, warnings, or refusals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from odradek.settings.kinds import INT, Choice, Whole
from odradek.settings.setting import setting

ALL_KEY = "subscription.budget.series"
PRINCIPAL_KEY = "subscription.budget.principal.series"
APP_KEY = "subscription.budget.app.series"
CLIENT_KEY = "subscription.budget.client.series"


class EstimateMode(StrEnum):
    """The use of an estimate when a subscription changes."""

    OFF = "off"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionBudgets:
    """Whether the host estimates subscriptions, and the most series that their clients should have."""

    # fmt: off
    mode: EstimateMode = setting(
        "subscription.estimate", Choice({each.value: each for each in EstimateMode}), EstimateMode.OFF,
        "Whether the host estimates the series of a subscription when it is created or changed: `warn` logs "
        "the figures, `refuse` also answers INVALID_CONFIG if a budget would be exceeded.",
        page="../howto/estimate-a-subscription.md",
    )
    series: int = setting(
        ALL_KEY, Whole(INT), 1_000_000,
        "Most series of all clients, for `subscription.estimate`; `0`: any number.", unit="series",
    )
    principal_series: int = setting(
        PRINCIPAL_KEY, Whole(INT), 100_000,
        "Most series of the clients of one principal, for `subscription.estimate`; `0`: any number.",
        unit="series",
    )
    app_series: int = setting(
        APP_KEY, Whole(INT), 20_000,
        "Most series of the clients of one app, for `subscription.estimate`; `0`: any number. An app is a "
        "consumer group, or the client ids that differ only in a number or a UUID at the end.", unit="series",
    )
    client_series: int = setting(
        CLIENT_KEY, Whole(INT), 2_000,
        "Most series of one client instance, for `subscription.estimate`; `0`: any number.", unit="series",
    )
    # fmt: on


class Exceeded(NamedTuple):
    """A budget that a subscription would exceed."""

    budget: str
    """The key of the setting."""
    scope: str
    """The principal, app or client instance with the most series; empty for all clients."""
    limit: int
    series: int
    scopes: int
    """How many principals, apps or client instances would exceed it."""

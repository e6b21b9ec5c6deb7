"""Subscriptions for a while: set by a command, and taken back by it, by a host, or by the next command."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.subscriptions import alter_subscription, delete_subscription
from odradek.plugin.lease import is_over, lease_name

TOKEN_BYTES: Final = 6
MOST_INSTANCES: Final = 200
"""Instances of one subscription: its pattern has a bound."""


def grant(
    admin: AdminClient, metrics: str, interval_ms: int, match: str, end_s: int, *, validate_only: bool = False
) -> str:
    """Set a subscription that ends, and return its name.

    Args:
        admin: The client.
        metrics: Prefixes of metric names, with commas.
        interval_ms: The push interval.
        match: The clients, as ``match`` of a subscription.
        end_s: When it ends, epoch seconds.
        validate_only: Only check it.
    """
    name = lease_name(end_s, secrets.token_hex(TOKEN_BYTES))
    properties: dict[str, str | None] = {
        "metrics": metrics,
        "interval.ms": str(interval_ms),
        "match": match,
    }
    alter_subscription(admin, name, properties, validate_only=validate_only)
    return name


def clear(admin: AdminClient, now_s: float) -> list[str]:
    """Delete leases that have ended, and return their names."""
    over = [name for name in admin.list_client_metrics() if is_over(name, now_s)]
    for name in over:
        delete_subscription(admin, name)
    return over


def exactly(selector: str, values: Sequence[str]) -> str:
    """The ``match`` for clients whose selector has one of these values.

    Kafka splits ``match`` at commas, so a comma is any character here.
    """
    patterns = [re.escape(value).replace(",", ".") for value in values[:MOST_INSTANCES]]
    return f"{selector}={patterns[0]}" if len(patterns) == 1 else f"{selector}=({'|'.join(patterns)})"

"""Subscriptions for a while: set by a command, and taken back by it, by a host, or by the next command."""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from typing import Final

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.lease import is_over, lease_name
from odradek.client.subscriptions import alter_subscription, delete_subscription

log = logging.getLogger(__name__)

TOKEN_BYTES: Final = 6
MOST_INSTANCES: Final = 200
"""Instances of one subscription: its pattern has a bound."""


class Leases:
    """Subscriptions that a console has set for a while, and takes back when they have ended.

    A host does that by itself, but Apache Kafka does not. Any thread may call the methods.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.names: set[str] = set()

    def add(self, name: str) -> None:
        """Remember a subscription."""
        with self.lock:
            self.names.add(name)

    def take_back(self, connect: Callable[[], AdminClient], now_s: float) -> None:
        """Delete those that have ended. If the cluster does not do it, the next call tries again.

        Args:
            connect: Makes a client of the cluster; it is called only if one has ended.
            now_s: Epoch seconds.
        """
        with self.lock:
            over = [name for name in self.names if is_over(name, now_s)]
        if not over:
            return
        try:
            with connect() as admin:
                listed = set(admin.list_client_metrics())
                for name in over:
                    if name in listed:
                        delete_subscription(admin, name)
        except ClientError as error:
            log.warning("subscriptions of watches that have ended stay: %s", error)
            return
        with self.lock:
            self.names.difference_update(over)


def new_name(end_s: int) -> str:
    """A new name of a subscription that ends.

    Args:
        end_s: When it ends, epoch seconds.
    """
    return lease_name(end_s, secrets.token_hex(TOKEN_BYTES))


def grant(admin: AdminClient, metrics: str, interval_ms: int, match: str, name: str) -> None:
    """Set a subscription that ends.

    Args:
        admin: The client.
        metrics: Prefixes of metric names, with commas.
        interval_ms: The push interval.
        match: The clients, as ``match`` of a subscription.
        name: A `new_name`, which tells the end.
    """
    properties: dict[str, str | None] = {
        "metrics": metrics,
        "interval.ms": str(interval_ms),
        "match": match,
    }
    alter_subscription(admin, name, properties)


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

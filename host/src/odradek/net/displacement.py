"""Closing connections beyond ``max.connections``."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from odradek.net.listener import Listener
from odradek.quota.connection_quotas import ConnectionQuotas


def displace(quotas: ConnectionQuotas, listeners: Sequence[Listener]) -> None:
    """Close the connections beyond the broker's limit.

    Connections that are being closed anyway go first, then the least recently used ones. Those of the
    inter-broker listener stay.
    """
    candidates = (
        channel
        for listener in listeners
        if not quotas.is_protected(listener.address.name)
        for channel in listener.channels
    )
    for channel in heapq.nsmallest(
        quotas.excess, candidates, key=lambda channel: (not channel.closing, channel.last_active_ms)
    ):
        channel.abort()

"""Increments: a push adds those of its client's hidden streams to the streams that they are part of."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint

from odradek.temporality.budgets.member import Part
from odradek.temporality.budgets.shared_gauges import set_own_gauges
from odradek.temporality.client_state import ClientState, Mark
from odradek.temporality.conversion import distribution_of
from odradek.temporality.exact_sum import added
from odradek.temporality.histogram import HistogramState
from odradek.temporality.stream_times import NS_PER_MS


class Before:
    """The totals of a client before a push."""

    __slots__ = ("amounts", "client", "shape", "times")

    def __init__(self, client: ClientState) -> None:
        self.client = client
        self.shape = client.shape
        self.amounts = client.amounts[:]
        self.times = client.times[:]

    def position(self, client: ClientState, position: int) -> int:
        """The position that a stream had; -1 if it is new."""
        keys, old = client.shape.keys, self.shape.keys
        if client.shape is self.shape or (position < len(old) and keys[position] == old[position]):
            return position
        return old.index(keys[position]) if keys[position] in old else -1


def increment(client: ClientState, position: int, before: Before | None) -> tuple[float, float]:
    """The growth of a total, and the rest of it that a double cannot hold.

    A total that has begun again grows by all of it, as Prometheus counts it.
    """
    total, compensation = client.amounts[2 * position : 2 * position + 2]
    old = before.position(client, position) if before is not None else -1
    if before is None or old < 0:
        return total, compensation
    total_before, compensation_before = before.amounts[2 * old : 2 * old + 2]
    has_begun = client.times[2 * position] != before.times[2 * old]
    falls = total + compensation < total_before + compensation_before
    is_cumulative = bool(client.marks) and client.marks.get(position, Mark(0)) & Mark.CUMULATIVE
    if falls or (has_begun and not is_cumulative):
        return total, compensation
    grown, rest = added(total, 0.0, -total_before)
    return grown, rest + (compensation - compensation_before)


def pass_on(client: ClientState, parts: Iterable[Part], before: Before | None) -> None:
    """Add the increments of a client's hidden streams to the streams that they are part of.

    Args:
        client: The client, after a push.
        parts: The streams that they are part of.
        before: Its totals before the push; None if it had none.
    """
    for part in parts:
        target = client if part.other is None else part.other.client
        amounts = target.amounts
        now_s = client.last_ms // 1000
        for position, home in part.sums:
            if client.seen[position] != now_s:
                continue
            value, rest = increment(client, position, before)
            if value or rest:
                total, compensation = added(amounts[2 * home], amounts[2 * home + 1], value)
                amounts[2 * home], amounts[2 * home + 1] = total, compensation + rest
            move_times(client, position, target, home)
        for position, home in part.distributions:
            if client.seen[position] == now_s:
                add_distribution(client, position, target, home)
                move_times(client, position, target, home)
        if part.other is None:
            set_own_gauges(client, part.gauges)


def move_times(client: ClientState, position: int, target: ClientState, home: int) -> None:
    """Note a point of a shared stream, by the host's clock: the clients' clocks differ."""
    now_ns = client.last_ms * NS_PER_MS
    if not target.times[2 * home + 1]:
        target.times[2 * home] = min(client.times[2 * position], now_ns)
    target.times[2 * home + 1] = max(target.times[2 * home + 1], now_ns)
    target.seen[home] = client.last_ms // 1000


def add_distribution(client: ClientState, position: int, target: ClientState, home: int) -> None:
    """Move a histogram's counts to the stream that it is part of; the client keeps nothing.

    A cumulative histogram is left out: its counts contain those that were moved before.
    """
    state = client.distributions.pop(position, None)
    total, compensation = client.amounts[2 * position : 2 * position + 2]
    client.amounts[2 * position] = client.amounts[2 * position + 1] = 0.0
    if state is None or (client.marks and client.marks.get(position, Mark(0)) & Mark.CUMULATIVE):
        return
    shared = target.distributions.get(home)
    point = state.point(total + compensation)
    if shared is None:
        target.distributions[home] = distribution_of(point)
    elif isinstance(shared, HistogramState) and isinstance(point, HistogramDataPoint):
        shared.merge(point)
    else:
        shared.add(point)  # type: ignore[arg-type]
    near, rest = added(target.amounts[2 * home], target.amounts[2 * home + 1], total)
    target.amounts[2 * home], target.amounts[2 * home + 1] = near, rest + compensation

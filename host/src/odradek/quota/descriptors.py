"""The division of the process's descriptors between connections and files.

Clients decide about connections, so these get what is left: files, plugins and workers never find all
descriptors in use. A log whose segment cannot be opened would fail its topic.
"""

from __future__ import annotations

from dataclasses import dataclass

from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting
from odradek.wire.limits import INT32_MAX

MOST_THROTTLED = 1_000
"""Sockets of throttled addresses that stay open. Kafka has no such limit, but a storm must not use up the
descriptors of other clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorSettings:
    """Descriptors that connections cannot have."""

    # fmt: off
    segments: int = setting(
        "log.segments.open.max", Whole(INT, 8), 512,
        "Segment files that are open at a time, but at most an eighth of the process's limit of open files; "
        "as many deleted ones stay open while they are sent.", unit="files",
    )
    reserved: int = setting(
        "descriptors.reserved", Whole(INT), 256,
        "Descriptors kept back for metadata, plugins and workers, but at most a quarter of the process's "
        "limit of open files; what these and twice `log.segments.open.max` leave bounds `max.connections`.",
        unit="descriptors",
    )
    # fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptors:
    """The shares of one process."""

    connections: int = INT32_MAX
    """Connections of all listeners."""
    throttled: int = MOST_THROTTLED
    """Sockets of throttled addresses, of all listeners."""
    segments: int = 512
    """Segment files. As many of deleted segments may be open that are still being sent."""


def divided(limit: int | None, settings: DescriptorSettings, per_connection: int = 1) -> Descriptors:
    """Return the shares of a process.

    Args:
        limit: The descriptors that the process may have; None if there is no limit.
        settings: The wanted shares of files.
        per_connection: How many descriptors a connection takes.
    """
    if limit is None:
        return Descriptors(segments=settings.segments)
    segments = min(settings.segments, limit // 8)
    reserved = min(settings.reserved, limit // 4)
    throttled = min(MOST_THROTTLED, limit // 16)
    connections = (limit - 2 * segments - reserved - throttled) // per_connection
    return Descriptors(connections=connections, throttled=throttled, segments=segments)

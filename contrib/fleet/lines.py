"""The places of a fleet: connections, and the clients that have them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from contrib.fleet.behavior import Client, Kind
from contrib.fleet.link import Link
from contrib.fleet.payloads import RecordedPayloads

from odradek.testing.pushes import recorded

Payload = Callable[[Client, int], bytes]
"""The MetricsData of a client's push at a time, epoch nanoseconds."""


def recorded_payload(kinds: Sequence[Kind]) -> Payload:
    """Payloads as the clients of these kinds were recorded."""
    payloads = RecordedPayloads([each for kind in kinds for each in kind.recordings])

    def payload(client: Client, now_ns: int) -> bytes:
        return payloads.push(client.recording, client.source, now_ns, client.pause_ms)

    return payload


def software(kind: Kind) -> tuple[str, str]:
    """The name and version that the recorded client gave."""
    connection = recorded(kind.recordings[0])[0].context.connection
    return connection.client_software_name, connection.client_software_version


@dataclass(slots=True, eq=False)
class Seat:
    """A place in the fleet: the client that has it, and its time."""

    client: Client
    line: Line
    timer: asyncio.TimerHandle | None = None
    due_s: float = 0.0
    waits: bool = False
    """True if its request is due and its connection is not ready."""
    busy: bool = False
    leaving: bool = False


@dataclass(slots=True, eq=False)
class Line:
    """A connection that is opened again when it is lost."""

    number: int
    kind: Kind
    seats: list[Seat] = field(default_factory=list)
    link: Link | None = None
    """None while it is down, and until the broker has said what it offers."""
    opened: Link | None = None
    """The same from the beginning."""
    attempt: int = 0
    quiet_until_s: float = 0.0
    """A throttled client sends nothing before this time of the loop."""
    closing: bool = False

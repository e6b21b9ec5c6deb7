"""The series of a client instance as they were after a commit."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

from odradek.temporality.budgets.member import is_other
from odradek.temporality.client_state import OWN, ClientState, Distribution, Mark
from odradek.temporality.clients import silence_ms
from odradek.temporality.stream_key import Identity
from odradek_prometheus.client_labels import Facts
from odradek_prometheus.families import Family
from odradek_prometheus.label_values import Labels
from odradek_prometheus.mapped_streams import MappedStreams


class MappedSeries(NamedTuple):
    """One series with its current value."""

    family: Family
    labels: Labels
    """All labels but the name, sorted."""
    value: float
    """The total or the value of a gauge; of a histogram its sum. Never NaN."""
    start_ns: int
    """Nanoseconds of the client's clock, as is the next."""
    last_ns: int
    distribution: Distribution | None


class Ended(NamedTuple):
    """A series that was shown and is no longer."""

    family: Family
    labels: Labels
    time_ms: int
    """The host's time."""
    distribution: Distribution | None
    instance_id: bytes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ClientSeries:
    """A client instance after a commit. Nothing of it changes, so any thread may read it."""

    instance_id: bytes
    note: bytes
    """The facts as bytes, as the totals store them."""
    facts: Facts
    """All that is known of the client."""
    shown: Facts
    """The labels of each series."""
    mapped: MappedStreams
    """The series without these labels and without values."""
    values: array[float]
    starts_ns: array[int]
    last_ns: array[int]
    seen_s: array[int]
    """When the host last saw a point of each stream, in seconds."""
    live: bytes
    """For each stream whether it is shown, 1 or 0."""
    distributions: Mapping[int, Distribution]
    received_ms: int
    """When the host received the last record."""
    since_ms: int
    """When it received the first record of the last batch with this client."""
    interval_ms: int
    terminated: bool
    new_streams: frozenset[Identity] = frozenset()
    """The streams whose first point is in the last batch."""

    @property
    def is_client(self) -> bool:
        """Whether it is one client, and not an ``other``, a group or a topic."""
        return self.facts.is_of_client and not is_other(self.instance_id)

    @property
    def labels(self) -> Labels:
        """The labels of a series whose data point has none."""
        return self.shown.labels

    @property
    def info(self) -> Labels:
        """Everything that is known, as labels."""
        return self.facts.labels

    @property
    def renamed(self) -> int:
        """The number of series in which a label of the client has another name."""
        names = self.shown.names
        if names.isdisjoint(self.mapped.names):
            return 0
        streams = [each for each in self.mapped.streams if each is not None]
        return sum([not names.isdisjoint([name for name, _ in each.labels]) for each in streams])

    def __len__(self) -> int:
        return self.live.count(1)

    def series(self) -> Iterator[MappedSeries]:
        """The series that are shown."""
        return (self.at(position) for position, live in enumerate(self.live) if live)

    def touched(self) -> Iterator[MappedSeries]:
        """The series with a point in the last batch."""
        return (self.at(position) for position in self.touched_positions())

    def touched_positions(self) -> Iterator[int]:
        """The positions of the streams with a point in the last batch."""
        since_s = self.since_ms // 1000
        return (
            position for position, live in enumerate(self.live) if live and self.seen_s[position] >= since_s
        )

    def is_new(self, position: int) -> bool:
        """Whether the first point of a stream is in the last batch."""
        return bool(self.new_streams) and self.mapped.identities[position] in self.new_streams

    def at(self, position: int) -> MappedSeries:
        """The series of a stream that is shown."""
        stream = self.mapped.streams[position]
        assert stream is not None
        return MappedSeries(
            stream.family,
            self.shown.beside(stream.labels),
            self.values[position],
            self.starts_ns[position],
            self.last_ns[position],
            self.distributions.get(position),
        )

    def ended(self, after: ClientSeries | None, time_ms: int) -> list[Ended]:
        """The series that are shown here but not in a later picture.

        Args:
            after: The later picture; None if the client is no longer shown.
            time_ms: The host's time of the later picture.
        """
        if after is not None and after.shown.labels == self.shown.labels:
            if after.mapped is self.mapped and after.live == self.live:
                return []
            still = {after.mapped.identities[each] for each, live in enumerate(after.live) if live}
        else:
            still = set()
        gone = [
            position
            for position, live in enumerate(self.live)
            if live and self.mapped.identities[position] not in still
        ]
        return [
            Ended(*self.at(each)[:2], time_ms, self.distributions.get(each), self.instance_id)
            for each in gone
        ]

    def next_end_ms(self, linger_ms: int) -> int:
        """The first time at which a series ends if the client stays silent."""
        if self.terminated:
            return self.received_ms + linger_ms + 1
        silence = silence_ms(self.interval_ms)
        seen = [second for second, live in zip(self.seen_s, self.live, strict=True) if live]
        # A second that has begun counts from its end.
        return min(self.received_ms, 1000 * min(seen) + 999 if seen else self.received_ms) + silence + 1


def picture(
    instance_id: bytes,
    client: ClientState,
    mapped: MappedStreams,
    facts: tuple[Facts, Facts],
    now_ms: int,
    since_ms: int,
    new_streams: frozenset[Identity] = frozenset(),
) -> ClientSeries:
    """Copy the values of a client.

    Args:
        instance_id: The client instance.
        client: Its state.
        mapped: Its streams.
        facts: All facts, and the shown ones.
        now_ms: Streams that have been silent for too long at this time are not shown.
        since_ms: When the host received the first record of the last batch with this client.
        new_streams: The streams whose first point is in that batch.
    """
    values = array("d", map(float.__add__, client.amounts[0::2], client.amounts[1::2]))
    return ClientSeries(
        instance_id=instance_id,
        note=client.note,
        facts=facts[0],
        shown=facts[1],
        mapped=mapped,
        values=values,
        starts_ns=client.times[0::2],
        last_ns=client.times[1::2],
        seen_s=client.seen[:],
        live=live_streams(client, mapped, values, now_ms),
        distributions={each: deepcopy(state) for each, state in client.distributions.items()},
        received_ms=client.last_ms,
        since_ms=since_ms,
        interval_ms=client.interval_ms,
        terminated=client.closed,
        new_streams=new_streams,
    )


def live_streams(client: ClientState, mapped: MappedStreams, values: array[float], now_ms: int) -> bytes:
    """For each stream whether it is shown."""
    silence = silence_ms(client.interval_ms)
    oldest_s = 0 if client.closed else max(0, (now_ms - silence) // 1000)
    found = bytearray(
        [
            stream is not None and value == value and last != 0 and seen >= oldest_s
            for stream, value, last, seen in zip(
                mapped.streams, values, client.times[1::2], client.seen, strict=True
            )
        ]
    )
    if client.routes is not None:
        for position, route in enumerate(client.routes):
            if route != OWN:
                found[position] = 0
    for position, mark in client.marks.items():
        if mark & Mark.ENDED:
            found[position] = 0
    return bytes(found)

"""Samples that wait for the receiver, in the order in which each client's must arrive.

A shard has the samples of some clients and one request in flight, so a series stays in order. The times of a
client's samples increase, whatever the clocks of client and host do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple
from zlib import crc32

from odradek_prometheus.client_facts import client_facts
from odradek_prometheus.client_series import ClientSeries, Ended, MappedSeries
from odradek_prometheus.remote_write.sample import Sample
from odradek_prometheus.remote_write.series_samples import NS_PER_MS, External, Moment, markers_of, samples_of

SAME_CLOCK_MS: Final = 30_000
"""Client and host have the same time if it differs by less: a push takes a while."""


class Sent(NamedTuple):
    """The times of a client's samples."""

    last_ms: int
    """Of the newest sample."""
    shift_ms: int
    """From the client's clock to the host's, by the client's first record."""


class Outbox:
    """The samples of all shards."""

    def __init__(self, shards: int, external: External) -> None:
        """Begin without samples.

        Args:
            shards: How many requests may be in flight.
            external: Labels of all series.
        """
        self.shards: list[deque[Sample]] = [deque() for _ in range(shards)]
        self.external = external
        self.times: dict[bytes, Sent] = {}
        self.facts: dict[bytes, tuple[MappedSeries, ...]] = {}
        """The facts of each client as they were sent."""

    def __bool__(self) -> bool:
        return any(self.shards)

    def shard(self, instance_id: bytes) -> deque[Sample]:
        """The shard of a client."""
        return self.shards[crc32(instance_id) % len(self.shards)]

    def continue_after(self, clients: Iterable[ClientSeries]) -> None:
        """Continue after the newest records of these clients, whose samples an earlier process has sent."""
        for client in clients:
            self.times.setdefault(client.instance_id, Sent(client.received_ms, shift_of(client)))

    def moment(self, client: ClientSeries, time_ms: int) -> Moment:
        """The times of new samples of a client.

        Args:
            client: The client.
            time_ms: When they should be.
        """
        if client.instance_id not in self.times:
            self.times[client.instance_id] = Sent(0, shift_of(client))
        return self.next_moment(client.instance_id, time_ms)

    def next_moment(self, instance_id: bytes, time_ms: int) -> Moment:
        """A time after all samples of a client, if possible this one."""
        before = self.times.get(instance_id, Sent(0, 0))
        sent = self.times[instance_id] = Sent(max(time_ms, before.last_ms + 1), before.shift_ms)
        return Moment(*sent)

    def add(self, client: ClientSeries) -> int:
        """Take the samples of a client's newest record.

        Returns:
            The number of histograms that Prometheus cannot have.
        """
        left_out = 0
        moment = self.moment(client, client.received_ms)
        append, added = self.shard(client.instance_id).extend, self.external.added
        for position in client.touched_positions():
            series = client.at(position)
            samples = list(samples_of(series, added(series.labels), moment, is_new=client.is_new(position)))
            left_out += not samples
            append(samples)
        self.add_facts(client, moment)
        return left_out

    def resend(self, client: ClientSeries, now_ms: int) -> None:
        """Take the current values of a client again, so that Prometheus still finds them."""
        moment = self.moment(client, now_ms)
        append, added = self.shard(client.instance_id).extend, self.external.added
        for series in client.series():
            append(samples_of(series, added(series.labels), moment))
        self.add_facts(client, moment)

    def add_facts(self, client: ClientSeries, moment: Moment) -> None:
        """Take the facts of a client, and end those that have other labels now."""
        before = self.facts.get(client.instance_id, ())
        after = self.facts[client.instance_id] = tuple(client_facts(client, moment.time_ms))
        append, added = self.shard(client.instance_id).extend, self.external.added
        still = {(series.family, series.labels) for series in after}
        for series in after:
            append(samples_of(series, added(series.labels), moment))
        for series in before:
            if (series.family, series.labels) not in still:
                append(markers_of(series, added(series.labels), moment.time_ms))

    def end(self, ended: Iterable[Ended]) -> None:
        """Take the markers of series that have ended."""
        times: dict[bytes, int] = {}
        for each in ended:
            instance_id = each.instance_id
            time_ms = times.get(instance_id)
            if time_ms is None:
                time_ms = times[instance_id] = self.next_moment(instance_id, each.time_ms).time_ms
            series = MappedSeries(each.family, each.labels, 0.0, 0, 0, each.distribution)
            self.shard(instance_id).extend(markers_of(series, self.external.added(each.labels), time_ms))

    def end_facts(self, instance_id: bytes, time_ms: int) -> None:
        """Take the markers of the facts of a client that has ended."""
        facts = self.facts.pop(instance_id, ())
        if facts:
            time_ms = self.next_moment(instance_id, time_ms).time_ms
            for series in facts:
                markers = markers_of(series, self.external.added(series.labels), time_ms)
                self.shard(instance_id).extend(markers)

    def last_ms(self, instance_id: bytes) -> int:
        """The time of the newest sample of a client; 0 if it has none."""
        sent = self.times.get(instance_id)
        return sent.last_ms if sent is not None else 0

    def leave(self, instance_id: bytes) -> None:
        """Forget a client that another process has now: its series go on there."""
        self.facts.pop(instance_id, None)
        self.times.pop(instance_id, None)

    def forget_before(self, time_ms: int) -> None:
        """Forget the times of clients whose last sample is older."""
        self.times = {each: sent for each, sent in self.times.items() if sent.last_ms >= time_ms}


def shift_of(client: ClientSeries) -> int:
    """The milliseconds from the client's clock to the host's; 0 if they show the same time."""
    newest_ns = max(client.last_ns, default=0)
    if not newest_ns:
        return 0
    shift_ms = client.received_ms - newest_ns // NS_PER_MS
    return 0 if abs(shift_ms) <= SAME_CLOCK_MS else shift_ms

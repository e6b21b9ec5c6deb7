"""Samples that wait for the receiver, in the order in which each client's must arrive.

A shard has the samples of some clients and one request in flight, so a series stays in order. The times of a
client's samples increase, whatever the clocks of client and host do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from zlib import crc32

from odradek_prometheus.client_facts import client_facts
from odradek_prometheus.exposition import ClientSeries, Ended
from odradek_prometheus.remote_write.sample import Sample
from odradek_prometheus.remote_write.series_samples import External, Moment, markers_of, samples_of

NS_PER_MS: Final = 1_000_000
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
        self.changed: set[bytes] = set()
        """Instances whose times are not stored."""

    def __bool__(self) -> bool:
        return any(self.shards)

    def shard(self, instance_id: bytes) -> deque[Sample]:
        """The shard of a client."""
        return self.shards[crc32(instance_id) % len(self.shards)]

    def restore(self, times: Mapping[bytes, Sent]) -> None:
        """Continue after these times."""
        self.times = dict(times)

    def moment(self, client: ClientSeries, time_ms: int, *, again: bool = False) -> Moment:
        """The times of new samples of a client.

        Args:
            client: The client.
            time_ms: When they should be.
            again: They may have been sent, so they get the same time.
        """
        before = self.times.get(client.instance_id)
        if before is None:
            before = Sent(0, shift_of(client))
        sent = Sent(max(time_ms, before.last_ms if again else before.last_ms + 1), before.shift_ms)
        self.times[client.instance_id] = sent
        self.changed.add(client.instance_id)
        return Moment(*sent)

    def add(self, client: ClientSeries, known: frozenset[int] | None, *, again: bool = False) -> None:
        """Take the samples of a client's newest record.

        Args:
            client: The client after that record.
            known: The positions of its streams that had samples before; None for all.
            again: The record was taken before; its samples may have been sent.
        """
        moment = self.moment(client, client.received_ms, again=again)
        append, added = self.shard(client.instance_id).extend, self.external.added
        for series in client.touched():
            append(samples_of(series, added(series.labels), moment))
        self.add_facts(client, moment)

    def resend(self, client: ClientSeries, now_ms: int) -> None:
        """Take the current values of a client again, so that Prometheus still finds them."""
        moment = self.moment(client, now_ms)
        append, added = self.shard(client.instance_id).extend, self.external.added
        for series in client.series():
            append(samples_of(series, added(series.labels), moment))
        self.add_facts(client, moment)

    def add_facts(self, client: ClientSeries, moment: Moment) -> None:
        for series in client_facts(client, moment.time_ms):
            self.shard(client.instance_id).extend(
                samples_of(series, self.external.added(series.labels), moment)
            )

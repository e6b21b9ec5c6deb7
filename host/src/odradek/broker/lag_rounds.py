"""Rounds over groups or clients, whose lag is written as records of the source ``lag``.

Two tasks take turns with requests: one notes the ends of partitions, the other walks over all groups. A
group, client or topic that has not moved is written again after `REWRITE_MS`, or when its lag in seconds is
`TIME_ERROR` more. Groups and clients are a host's own, or those of a cluster that is polled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from odradek import __version__
from odradek.bounds.bounded_regex import RegexBounds, compiled_within
from odradek.lag.group_lag import Granularity, GroupLag, within
from odradek.lag.lag_settings import LagSettings
from odradek.lag.meter import Measured, Positions
from odradek.lag.report import Point, SeriesSet, Subject, ended, instance_of, payloads, points_of
from odradek.lag.trends import Trends
from odradek.metrics.metric import MetricRow, Metrics, declare
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.record_source import UNCOMPRESSED, RecordSource
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps

REWRITE_MS: Final = 300_000
"""Also the push interval of the records: the series of a writer that died end after three of them."""
TIME_ERROR: Final = 0.1
"""A share of the lag in seconds."""
POINTS_PER_S: Final = 2_500
"""The topic grows by 2 GB a day at most: a point takes up to nine bytes in it, compressed."""
RECORD_POINTS: Final = 10
"""A record counts as so many further points, for its headers."""
MATCHES_KEPT: Final = 10_000
PUSH_TELEMETRY: Final = 72
ACTIVE: Final = declare("gauge", "odradek.lag.active", "1", "1 if this process measures the lag of groups")


def metrics_of_rounds(prefix: str, whose: str) -> Metrics[LagRounds]:
    """The metrics of rounds over groups or clients."""
    made: Metrics[LagRounds] = Metrics(prefix)
    made.gauge("round.time", "s", f"Time that the last round over all {whose} took", "round_s")
    made.gauge("round.age", "s", f"Time since the end of the last round over all {whose}", "round_age_s")
    made.counter("rounds", "{round}", f"Rounds over all {whose}, by outcome", by="outcome")
    made.gauge("series", "{series}", f"Series of the lag of {whose}", "series")
    text = f"Series of the lag of {whose} that the last round left out, by reason"
    made.gauge("series.left.out", "{series}", text, "left_out", by="reason")
    return made


ROUNDS: Final = metrics_of_rounds("odradek.lag", "groups")
CLIENT_ROUNDS: Final = metrics_of_rounds("odradek.lag.clients", "clients")


class Reported(NamedTuple):
    """The last record about a group, client or topic."""

    subject: Subject
    granularity: Granularity
    written_ms: int
    """On the monotonic clock."""
    series: SeriesSet

    def is_due(self, subject: Subject, now_ms: int) -> bool:
        """Whether it must be written again as it is now."""
        silent_ms, shortest_ms = now_ms - self.written_ms, subject.shortest_ms
        if silent_ms >= REWRITE_MS or (shortest_ms and silent_ms > shortest_ms * TIME_ERROR):
            return True
        return self.subject.figures != subject.figures

    @property
    def points(self) -> Iterator[Point]:
        return points_of(self.subject, self.granularity)


def matcher(expression: str) -> Callable[[str], bool]:
    """Whether a whole name matches; remembers the last answers."""
    matches = compiled_within(expression, RegexBounds()).fullmatch
    return lru_cache(MATCHES_KEPT)(lambda name: matches(name) is not None)


class LagRounds:
    """The lag of all groups or clients of a host or a cluster, in records.

    Args:
        positions: Of the groups or clients.
        settings: How often, and how many series.
        interval_ms: How often ends are noted.
        cluster_id: The id of the cluster, which is also its name unless it has one.
        node_id: Of the host; -1 for a cluster.
        source: Takes the records.
        clock: The time.
        timer: Begins the work.
        steps: Runs it.
        leads: Whether this process may write; another one may do so otherwise.
        metrics: Of the rounds.
    """

    def __init__(
        self,
        positions: Positions[Any, Any],
        settings: LagSettings,
        interval_ms: int,
        *,
        cluster_id: str,
        node_id: int,
        source: RecordSource,
        clock: Clock,
        timer: Timer,
        steps: StepRunner,
        leads: Callable[[], bool] = lambda: True,
        metrics: Metrics[LagRounds] = ROUNDS,
    ) -> None:
        self.positions = positions
        self.settings = settings
        self.interval_ms = interval_ms
        self.cluster_id = cluster_id
        self.source = source
        self.clock = clock
        self.timer = timer
        self.steps = steps
        self.leads = leads
        self.metrics = metrics
        self.connection = ConnectionContext(
            connection_id="odradek.lag",
            listener_name="",
            security_protocol="",
            client_address="",
            client_port=0,
            node_id=node_id,
            client_software_name="odradek",
            client_software_version=__version__,
        )
        self.trends = Trends()
        self.reported: dict[bytes, Reported] = {}
        """By client instance id."""
        self.seen: set[bytes] = set()
        """The client instance ids of this round."""
        self.rounds = Counter(completed=0, failed=0)
        self.left_out = {"age": 0, "budget": 0}
        self.round_s = 0.0
        self.written_points = 0
        """Of this round, with those of `RECORD_POINTS`."""
        self.ended_ms = clock.monotonic_ms()
        self.stopped = False

    @property
    def round_age_s(self) -> float:
        return (self.clock.monotonic_ms() - self.ended_ms) / 1_000

    @property
    def series(self) -> int:
        return sum([each.series.number for each in self.reported.values()])

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the rounds."""
        yield from self.metrics.rows(self)

    def start(self, *, at_once: bool = False) -> None:
        """Begin to note ends and to write.

        Args:
            at_once: The first round does not wait, because others have written these series until now.
        """
        self.note()
        self.later(0 if at_once else self.settings.export_interval_ms, self.begin_round)

    def stop(self) -> None:
        """Write nothing any more. The series go on after a restart, or end by their silence."""
        self.stopped = True

    def resign(self) -> None:
        """Write nothing any more, and end all series: another process writes them."""
        self.stop()
        self.steps.run(self.end_all())

    def note(self) -> None:
        """Note ends, again and again."""
        if not self.stopped:
            again = partial(self.later, self.interval_ms, self.note)
            self.steps.run(self.positions.note_ends(), lambda _outcome: again())

    def later(self, wait_ms: int, action: Callable[[], None]) -> None:
        """Act after a time. A task of the runner that only waits would look like work of the loop."""
        self.timer.schedule(self.clock.monotonic_ms() + wait_ms, action)

    def begin_round(self) -> None:
        if not self.stopped:
            self.steps.run(self.round(), partial(self.round_ended, self.clock.monotonic_ms()))

    def round_ended(self, started_ms: int, outcome: object) -> None:
        """Have the next round. A long one is followed by a pause of the same length at least, and one that
        has written much by a pause for the sake of the topic.
        """
        self.rounds["failed" if isinstance(outcome, Exception) else self.positions.outcome] += 1
        self.ended_ms = self.clock.monotonic_ms()
        took_ms = self.ended_ms - started_ms
        self.round_s = took_ms / 1_000
        paced_ms = self.written_points * 1_000 // POINTS_PER_S
        self.later(
            max(self.settings.export_interval_ms - took_ms, paced_ms - took_ms, took_ms), self.begin_round
        )

    def round(self) -> Steps:
        """Measure all groups or clients, and write those that have changed."""
        positions, finest = self.positions, self.settings.granularity
        self.written_points = 0
        yield from positions.begin()
        self.trends.begin()
        self.seen = set()
        counts = positions.groups()
        fallen = dict(within(counts, finest, self.settings.max_series))
        ageless = 0
        for group in counts:
            measured: Measured[Any] | None = yield from positions.measured(group)
            if measured is None:
                continue
            lag = measured.lag
            ageless += sum(each.ageless for each in lag.topics.values())
            granularity = fallen.get(group, finest)
            if self.is_idle(group, measured):
                granularity = Granularity.GROUP
            if isinstance(lag, GroupLag):
                lag = self.trends.of_group(lag, self.clock.monotonic_ms())
            yield from self.report(lag, granularity)
        for found in positions.ends():
            ends = self.trends.of_topic(found, self.clock.monotonic_ms())
            yield from self.report(ends, Granularity.PARTITION)
        for instance_id in self.reported.keys() - self.seen:
            yield from self.end(instance_id)
        kept = {group: counts[group].topic if to is Granularity.TOPIC else 0 for group, to in fallen.items()}
        of_budget = sum([counts[group].partition - left for group, left in kept.items()])
        self.left_out = {**positions.left_out, "age": ageless, "budget": of_budget}

    def is_idle(self, group: Any, measured: Measured[Any]) -> bool:
        """Whether an empty group has not committed for a long time."""
        silent_ms = self.clock.now_ms() - measured.moved_ms
        return silent_ms > self.settings.idle_groups_ms and self.positions.is_empty(group)

    def report(self, subject: Subject, granularity: Granularity) -> Steps:
        """Write a group, client or topic, unless the same was written a short time ago."""
        instance_id = instance_of(self.cluster_id, subject)
        self.seen.add(instance_id)
        before, now_ms = self.reported.get(instance_id), self.clock.monotonic_ms()
        if not self.leads():
            return
        if before is not None and before.granularity is granularity and not before.is_due(subject, now_ms):
            return
        series: SeriesSet = yield from self.write(instance_id, points_of(subject, granularity))
        self.reported[instance_id] = Reported(subject, granularity, now_ms, series)
        if before is not None and before.series != series:
            yield from self.write(instance_id, ended(before.points, points_of(subject, granularity)))

    def end(self, instance_id: bytes) -> Steps:
        """End all series of a group or a topic that is no longer there."""
        before = self.reported.pop(instance_id, None)
        if before is not None:
            yield from self.write(instance_id, ended(before.points, ()), terminating=True)

    def end_all(self) -> Steps:
        """End all series."""
        for instance_id in list(self.reported):
            yield from self.end(instance_id)

    def write(
        self, instance_id: bytes, points: Iterator[Point], *, terminating: bool = False
    ) -> Generator[None, Any, SeriesSet]:
        """Write points; return their series."""
        now_ms = self.clock.now_ms()
        context = RequestContext(self.connection, PUSH_TELEMETRY, 0, 0, None, now_ms)
        written = payloads(points, now_ms, self.settings.cluster_name or self.cluster_id)
        while True:
            try:
                data = next(written)
            except StopIteration as stop:
                series: SeriesSet = stop.value
                self.written_points += series.number
                return series
            payload = ClientTelemetryPayload(instance_id, terminating, data)
            record = TelemetryRecord(context, REWRITE_MS, payload, 0, UNCOMPRESSED, labeled=False)
            self.written_points += RECORD_POINTS
            self.source.bring(record, None)  # enrichers know clients
            yield None

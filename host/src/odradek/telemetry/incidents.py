"""Incidents: what goes wrong between clients and brokers, counted by client and written as telemetry.

Clients do not tell of them: one that cannot log in cannot push, a throttled one is not read, and most
libraries have no metric of errors. Only what is rare is counted here, so a request without an incident costs
nothing.

A record about a client that pushes is one of its own, with the Resource of its last push: it is alive. Others
are observed clients, which say goodbye when nothing more has happened to them for `QUIET_MS`. Subscriptions
do not select incidents: nobody expects them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from odradek.findings.incidents import GROUP_JOINS, GROUP_LEAVES, GROUP_REJOINS, LOST, UNKNOWN_TOPICS
from odradek.metrics.metric import MetricRow, Metrics
from odradek.otlp.metrics_writer import Attributes, Window
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.plugin.protocols import TelemetryRecord
from odradek.telemetry.client_key import ClientKey, key_of_request
from odradek.telemetry.client_labels import Labels
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.goodbyes import Goodbyes, Place, Seen
from odradek.telemetry.labeled_record import labeled_record
from odradek.telemetry.record_source import UNCOMPRESSED, RecordSource
from odradek.telemetry.stuck_members import StuckMembers
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.deferred import after
from odradek.wire.errors import WireError

SOURCE_NAME: Final = "incidents"
SCOPE: Final = "io.odradek.observed.client"
CHECK_MS: Final = 1_000
"""The first incident of a client is written within this time."""
REPEAT_MS: Final = 10_000
"""Later ones are written together after this time, or after a shorter push interval."""
QUIET_MS: Final = 45_000
"""A client without a further incident is forgotten after this time: before it would count as silent."""
WRITTEN_AT_ONCE: Final = 20
"""Records in one pass of the loop: some milliseconds."""
PAUSE_MS: Final = 1
MOST_OF_CLIENT: Final = 20
"""Series of one client with labels of their own; what is beyond has `OTHER` in their places."""
OTHER: Final = "other"
LEAST: Final = dict.fromkeys((UNKNOWN_TOPICS, GROUP_JOINS, GROUP_LEAVES, GROUP_REJOINS), 3)
"""Fewer are not told: a topic that is created at its first use is not known once or twice, and a member joins
and leaves once.
"""
OF_MANY: Final = frozenset({GROUP_JOINS})
"""They are told of what instances have in common that come one after the other, each with one of them."""
MOST_OF_LABEL: Final = 249
"""Characters of a label, the longest name of a topic: clients choose some of them."""
PUSH_TELEMETRY: Final = 72
NO_NODE: Final = -1
INCIDENTS: Metrics[Incidents] = Metrics("odradek.incidents")
INCIDENTS.gauge("clients", "{client}", "Clients with an incident in the last minute", "accounts")
INCIDENTS.gauge("series", "{series}", "Series of the incidents of these clients")
INCIDENTS.counter(
    "left.out", "{incident}", "Incidents that were not told because there were too many series", "left_out"
)


Named = tuple[str, Attributes]
"""A metric and the labels of its data point."""


class Known(NamedTuple):
    """An observed client that is reported anyway."""

    connection: ConnectionContext
    resource: Attributes


@dataclass(slots=True, eq=False)
class Account:
    """The incidents of one client."""

    key: ClientKey
    of_many: bool
    """See `OF_MANY`."""
    connection_id: str
    """Of the last incident; empty if it is not known."""
    since_ms: int
    """When the current sums begin, epoch milliseconds."""
    last_ms: int
    """The last incident, on the monotonic clock, as is the next."""
    due_ms: int
    """When the sums may be written."""
    written_ms: int = 0
    """When they were written last."""
    sums: dict[Named, int] = field(default_factory=dict)
    """By metric and labels, since the last record; 0 for those without an incident since."""
    lasting: dict[Named, tuple[int, int]] = field(default_factory=dict)
    """Incidents that last: the time that the sums have, and that of their end, on the monotonic clock."""
    pending: bool = False
    """There are incidents that are not written."""
    followed: bool = False
    """The client pushes, or is reported: others tell the end of its life."""
    told: bool = False
    """A record says that the client is there, and none that it has gone."""
    waits_until_ms: int = 0
    """It has asked for its subscription: how long its first push is waited for, on the monotonic clock."""


class Incidents:
    """The incidents of all clients of a program.

    Args:
        source: Takes the records.
        goodbyes: Knows the clients that push.
        clock: The time.
        timer: Writes the records.
        origin: The name of this program, see `ClientKey.instance_id`.
        most: Series of all clients; beyond it incidents are only counted.
    """

    def __init__(
        self,
        source: RecordSource,
        goodbyes: Goodbyes,
        clock: Clock,
        timer: Timer,
        origin: str,
        most: int,
    ) -> None:
        self.source = source
        self.goodbyes = goodbyes
        self.clock = clock
        self.timer = timer
        self.origin = origin
        self.most = most
        self.known: Callable[[ClientKey], Known | None] = lambda _key: None
        """Finds an observed client that is reported anyway."""
        self.observes: Callable[[Place], bool] = lambda _place: False
        """Whether an observed client at a place is connected."""
        self.stuck = StuckMembers(self.lasts, clock, timer)
        self.accounts: dict[tuple[ClientKey, bool], Account] = {}
        """By client, and whether it is of many."""
        self.series = 0
        self.left_out = 0
        self.task: TimerTask | None = None

    def add(
        self,
        key: ClientKey,
        metric: str,
        labels: Mapping[str, str],
        value: int = 1,
        connection_id: str = "",
    ) -> None:
        """Count an incident.

        Args:
            key: The client.
            metric: The full name of a sum; the reference of metrics has it.
            labels: The labels of the data point; long values are cut.
            value: How many incidents.
            connection_id: Of the client, if it is known.
        """
        self.count(key, metric, labels, value, connection_id)

    def lasts(
        self, key: ClientKey, metric: str, labels: Mapping[str, str], time_ms: int, connection_id: str = ""
    ) -> None:
        """Something lasts for a time from now on. The metric gets the time in milliseconds as it passes, so
        that the client is told of for as long; time that passes for two reasons at once counts once.

        Args:
            key: The client.
            metric: See `add`, as for the labels.
            labels: The labels of the data point.
            time_ms: How long, at least.
            connection_id: Of the client, if it is known.
        """
        account, named = self.count(key, metric, labels, 0, connection_id)
        if account is None:
            return
        now_ms = self.clock.monotonic_ms()
        counted_ms, end_ms = account.lasting.get(named, (now_ms, now_ms))
        if end_ms < now_ms:
            account.sums[named] += end_ms - counted_ms
            counted_ms = now_ms
        account.lasting[named] = counted_ms, max(end_ms, now_ms + time_ms)

    def count(
        self, key: ClientKey, metric: str, labels: Mapping[str, str], value: int, connection_id: str
    ) -> tuple[Account | None, Named]:
        """The account of a client, with a value added; None if there are too many series."""
        now_ms = self.clock.monotonic_ms()
        whose = key, metric in OF_MANY
        account = self.accounts.get(whose)
        sums = {} if account is None else account.sums
        named = metric, tuple([(name, text[:MOST_OF_LABEL]) for name, text in labels.items()])
        if named not in sums and len(sums) >= MOST_OF_CLIENT:
            named = metric, tuple([(name, OTHER) for name in labels])
        if named not in sums and self.series >= self.most:
            self.left_out += 1
            return None, named
        if account is None:
            account = Account(*whose, connection_id, self.clock.now_ms(), now_ms, now_ms)
            self.accounts[whose] = account
        self.series += named not in account.sums
        account.sums[named] = account.sums.get(named, 0) + value
        account.connection_id, account.last_ms, account.pending = connection_id, now_ms, True
        if self.task is None:
            self.task = self.timer.schedule(now_ms + CHECK_MS, self.turn)
        return account, named

    def turn(self) -> None:
        """Write what is due, and forget clients to which nothing more happens."""
        now_ms, left = self.clock.monotonic_ms(), WRITTEN_AT_ONCE
        for account in list(self.accounts.values()):
            if not left:
                break
            if account.pending and account.due_ms <= now_ms:
                left -= 1
                self.write(account)
            elif now_ms - max(account.written_ms, account.last_ms * (not account.told)) >= QUIET_MS:
                left -= 1
                self.forget(account)
        self.task = None
        if self.accounts:
            self.task = self.timer.schedule(now_ms + (CHECK_MS if left else PAUSE_MS), self.turn)

    def stop(self) -> None:
        """Write everything now; nothing is written afterwards."""
        self.stuck.stop()
        if self.task is not None:
            self.task.cancel()
            self.task = None
        for account in list(self.accounts.values()):
            if account.pending:
                self.write(account, waits=False)
        self.most = 0

    def write(self, account: Account, *, waits: bool = True) -> None:
        """Write the sums of a client, and begin new ones. One that is about to push is waited for, so that
        it has its incidents itself.
        """
        seen = None if account.of_many else self.seen(account)
        if waits and seen is not None and not seen.pushed and self.waits(account, seen):
            return
        if seen is not None and (not seen.pushed or seen.instance.terminating):
            seen = None
        now_ms = self.clock.now_ms()
        known = self.known(account.key) if seen is None else None
        is_followed = not account.of_many and (seen is not None or known is not None)
        if not (is_followed or account.of_many) and (account.followed or self.is_lost(account.key)):
            # Others have told its end: it must not come back to life.
            account.lasting.clear()
            account.sums, account.pending = dict.fromkeys(account.sums, 0), False
            return
        account.followed = is_followed
        self.pass_time(account)
        window = Window(account.since_ms, max(now_ms, account.since_ms))
        points: dict[str, dict[Attributes, int | float]] = {}
        for (metric, labels), value in account.sums.items():
            if value >= LEAST.get(metric, 1):
                points.setdefault(metric, {})[labels] = value
        for metric, values in points.items():
            window.sum(metric, "", values)
        interval_ms = REPEAT_MS
        if window.metrics:
            interval_ms = (
                self.write_observed(account, known, window) if seen is None else self.write_own(seen, window)
            )
        account.sums = {
            named: value if value < LEAST.get(named[0], 1) else 0 for named, value in account.sums.items()
        }
        account.since_ms, account.pending = now_ms, bool(account.lasting)
        account.due_ms = self.clock.monotonic_ms() + min(interval_ms, REPEAT_MS)

    def is_lost(self, key: ClientKey) -> bool:
        """Whether an observed client is lost, and waited for."""
        lost = self.goodbyes.lost.get((key.principal, key.client_id, True), {})
        return bool(lost) and key.instance_id(self.origin) in lost

    def pass_time(self, account: Account) -> None:
        """Add the time that has passed to the sums."""
        now_ms = self.clock.monotonic_ms()
        for named, (counted_ms, end_ms) in list(account.lasting.items()):
            upto_ms = min(now_ms, end_ms)
            account.sums[named] += upto_ms - counted_ms
            account.last_ms = upto_ms
            account.lasting[named] = upto_ms, end_ms
            if end_ms <= now_ms:
                del account.lasting[named]

    def waits(self, account: Account, seen: Seen) -> bool:
        """Whether a client may still push for the first time. Its record is due a moment later."""
        now_ms = self.clock.monotonic_ms()
        if not account.waits_until_ms:
            account.waits_until_ms = now_ms + 2 * seen.instance.push_interval_ms
        account.due_ms = now_ms + CHECK_MS
        return bool(seen.instance.plan.metrics) and now_ms < account.waits_until_ms

    def seen(self, account: Account) -> Seen | None:
        """The client instance that an account is about, if it asks here and only one can be meant."""
        connected = self.goodbyes.open
        seen = connected.get(account.connection_id)
        if seen is None:
            client_id = account.key.client_id
            alike = [each for each in connected.values() if (each.context.client_id or "") == client_id]
            found = {each.instance_id: each for each in alike if key_of_request(each.context) == account.key}
            seen = next(iter(found.values())) if len(found) == 1 else None
        return seen

    def write_own(self, seen: Seen, window: Window) -> int:
        """Write a record of a client that has others. Returns its push interval in milliseconds."""
        instance, manager = seen.instance, self.source.manager
        data = window.payload(instance.resource, SCOPE)
        record = TelemetryRecord(
            replace(seen.context, received_ms=self.clock.now_ms()),
            instance.push_interval_ms,
            ClientTelemetryPayload(seen.instance_id, terminating=False, data=data),
            instance.subscription_id,
            UNCOMPRESSED,
            observed=seen.observed,
            labeled=False,
        )
        after(manager.enrichers.of_client(instance, seen.context), partial(self.store, record))
        return instance.push_interval_ms

    def store(self, record: TelemetryRecord, labels: Labels) -> None:
        """Label and store a record of a client that has others."""
        try:
            ready = labeled_record(record, labels, self.source.manager.limits)
        except WireError as error:
            self.source.reject(error)
        else:
            self.source.take(ready)

    def lost(self, seen: Seen, why: str) -> None:
        """Tell that a client is lost; see `Goodbyes`."""
        if self.most:
            now_ms = self.clock.now_ms()
            window = Window(now_ms, now_ms)
            window.sum(LOST, "", {(("why", why),): 1})
            self.write_own(seen, window)

    def write_observed(self, account: Account, known: Known | None, window: Window) -> int:
        """Write a record of a client that does not push. Returns its push interval in milliseconds."""
        instance, context = self.observed(account, known)
        resource = (("observed", "true"),) if known is None else known.resource
        self.source.offer(instance, context, window.payload(resource, SCOPE), terminating=False)
        account.told, account.written_ms = known is None, self.clock.monotonic_ms()
        return instance.push_interval_ms

    def observed(self, account: Account, known: Known | None) -> tuple[ClientMetricsInstance, RequestContext]:
        """A client that does not push, and the request that its records appear to come from."""
        key = account.key
        instance_id = key.instance_id(self.origin)
        connection = self.connection(key, instance_id) if known is None else known.connection
        context = RequestContext(connection, PUSH_TELEMETRY, 0, 0, key.client_id, self.clock.now_ms())
        return self.source.instance(instance_id, context), context

    def connection(self, key: ClientKey, instance_id: bytes) -> ConnectionContext:
        """The connection of a client, as far as it is one."""
        return ConnectionContext(
            connection_id=f"observed-{instance_id.hex()}",
            listener_name="",
            security_protocol="",
            client_address=key.address,
            client_port=0,
            node_id=NO_NODE,
            principal=key.principal,
            client_software_name=key.software_name,
            client_software_version=key.software_version,
        )

    def forget(self, account: Account) -> None:
        """Forget a client; its last record says so, unless somebody else reports it."""
        del self.accounts[account.key, account.of_many]
        self.series -= len(account.sums)
        if account.told and self.known(account.key) is None:
            instance, context = self.observed(account, None)
            payload = ClientTelemetryPayload(instance.client_instance_id, terminating=True, data=b"")
            self.source.take(
                TelemetryRecord(
                    context, instance.push_interval_ms, payload, instance.subscription_id, observed=True
                )
            )

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the incidents."""
        return INCIDENTS.rows(self)

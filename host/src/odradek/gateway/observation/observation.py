"""All observed clients: finds the client of a pair, ends windows, and hands their payloads to the log.

Rules of this file:

1. Work for one client is some hundred microseconds, and thousands of windows can end together. Windows are
   ended for at most `TURN_NS` at a time.
2. A window belongs to the plan that was in force when it began. A new plan begins a new window.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import count
from typing import Any, Final

from odradek.gateway.observation.apis import Openings
from odradek.gateway.observation.client_account import BOOTSTRAP_NODE, ClientAccount, OpenPair, Watched
from odradek.gateway.observation.client_report import report, resource
from odradek.gateway.observation.fetch_watch import FetchWatch
from odradek.gateway.observation.names import wanted_names
from odradek.gateway.observation.observer import PairObserver
from odradek.gateway.observation.pair_account import PairAccount, SeenIncidents, key_of
from odradek.gateway.observation.settings import ObservationSettings, Observe
from odradek.gateway.pair_identity import PairIdentity
from odradek.gateway.telemetry_answers import PairConnection
from odradek.lag.readers import Reader, Reading
from odradek.metrics.metric import MetricRow, Metrics
from odradek.otlp.metrics_writer import encoded_resource
from odradek.plugin.context import RequestContext
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.telemetry.goodbyes import CHECK_MS as GOODBYE_MS
from odradek.telemetry.goodbyes import CONNECTION, GROUP, Goodbyes, Place, Seen
from odradek.telemetry.incidents import Known
from odradek.telemetry.record_source import RecordSource
from odradek.telemetry.topology import Client, Topology
from odradek.waiting.clock import Clock, Timer, TimerTask
from odradek.waiting.steps import Steps

TURN_NS: Final = 2_000_000
PAUSE_MS: Final = 1
"""The loop serves others for this long between two turns."""
CHECK_MS: Final = 1_000
"""How often the subscriptions are looked at for changes."""
PUSH_TELEMETRY: Final = 72
OTHER: Final = "other"
"""The client id of clients at an address with too many client ids."""
SOURCE_NAME: Final = "observed"
"""The name of the records' source."""
OBSERVED: Metrics[Observation] = Metrics("odradek.gateway.observed.clients")
OBSERVED.gauge("", "{client}", "Clients that are observed now", "clients")
OBSERVED.counter("evicted", "{client}", "Observed clients that were forgotten because there were too many")
OBSERVED.counter(
    "late", "{client}", "Observed clients whose figures from before a subscription selected them are lost"
)
OBSERVED.counter("folded", "{connection}", "Connections that are observed as the client id `other`")


def unnamed(_topic_id: bytes) -> str | None:
    """No topic has a name."""
    return None


class Observation:
    """The `Observer` of a gateway.

    Args:
        settings: Which clients, and how many.
        source: Takes the payloads.
        clock: The time.
        timer: Ends the windows.
        responses: The declared responses, by API key.
        goodbyes: Of clients that left without a word.
        origin: The name of this gateway: another one's metrics of a client are other series.
        follows_fetches: Whether to know what clients read.
        topology: Takes who uses which topic; None not to know it.
        name_of: The name of a topic with an id; None if it is not known.
    """

    def __init__(
        self,
        settings: ObservationSettings,
        source: RecordSource,
        clock: Clock,
        timer: Timer,
        responses: Mapping[int, type[Any]],
        goodbyes: Goodbyes,
        origin: str,
        *,
        follows_fetches: bool = False,
        topology: Topology | None = None,
        name_of: Callable[[bytes], str | None] = unnamed,
    ) -> None:
        self.settings = settings
        self.source = source
        self.clock = clock
        self.timer = timer
        self.openings = Openings(responses)
        self.goodbyes = goodbyes
        self.origin = origin
        self.topology = topology
        self.name_of = name_of
        self.fetch_watch = FetchWatch(clock, origin) if follows_fetches or topology is not None else None
        self.clients: OrderedDict[ClientKey, Watched] = OrderedDict()
        """Least recently used first."""
        self.client_ids: dict[str, dict[str, int]] = {}
        """Observed clients, by address and client id."""
        self.ends: list[tuple[int, int, Watched]] = []
        """Ends of windows, a heap. Outdated ends, and those of forgotten clients, stay until they are due."""
        self.serial = count()
        self.version = source.subscription_version
        self.outdated: deque[Watched] = deque()
        """Clients whose plan may have changed."""
        self.wanted: dict[tuple[str, ...], frozenset[str]] = {}
        """Names of metrics, by the prefixes of a plan."""
        self.late = 0
        self.evicted = 0
        self.folded = 0
        """Clients that were added to `OTHER`."""
        self.left_behind: deque[tuple[int, Place, int]] = deque()
        """Until when, and which members, of clients that are forgotten."""
        self.incidents: SeenIncidents | None = None
        """Of a gateway; a host itself knows them."""
        self.task: TimerTask | None = None

    def start(self) -> None:
        """Begin to end windows."""
        self.task = self.timer.schedule(self.clock.monotonic_ms() + CHECK_MS, self.turn)

    def stop(self) -> None:
        """End all windows now; nothing is written afterwards."""
        if self.task is not None:
            self.task.cancel()
            self.task = None
        for watched in list(self.clients.values()):
            self.end_window(watched)

    def opened(self, identity: PairIdentity) -> PairObserver:
        return PairAccount(self, identity, self.openings)

    # Finding the client of a pair

    def bind(self, pair: PairAccount) -> None:
        """Find the client of a pair, known or new."""
        key = self.folded_key(key_of(pair.identity))
        watched = self.clients.get(key)
        if watched is None:
            watched = self.add(key, pair.identity)
        else:
            self.clients.move_to_end(key)
        pair.join(watched.account)

    def folded_key(self, key: ClientKey) -> ClientKey:
        """The key, or that of the other clients of its address if there are too many client ids."""
        known = self.client_ids.get(key.address)
        if known is None or key.client_id in known or len(known) < self.settings.cardinality:
            return key
        self.folded += 1
        return key._replace(client_id=OTHER)

    def add(self, key: ClientKey, identity: PairIdentity) -> Watched:
        """A new client. If there are too many, the least recently used one is forgotten."""
        if len(self.clients) >= self.settings.max_clients:
            self.evict()
        now_ms, now_monotonic_ms = self.clock.now_ms(), self.clock.monotonic_ms()
        account = ClientAccount(key, key.instance_id(self.origin), now_ms, now_monotonic_ms)
        connection = PairConnection(
            connection_id=f"observed-{account.instance_id.hex()}",
            listener_name=identity.listener,
            security_protocol="",
            client_address=key.address,
            client_port=0,
            node_id=BOOTSTRAP_NODE,
            principal=key.principal,
            client_software_name=key.software_name,
            client_software_version=key.software_version,
            principal_source=identity.principal_source,
        )
        context = self.context(key, connection, now_ms)
        instance = self.source.instance(account.instance_id, context)
        watched = Watched(account, connection, instance, self.wanted_by(instance))
        self.goodbyes.began(Seen(instance, context, observed=True))
        self.clients[key] = watched
        ids = self.client_ids.setdefault(key.address, {})
        ids[key.client_id] = ids.get(key.client_id, 0) + 1
        self.schedule(watched, now_monotonic_ms, first=True)
        return watched

    def context(self, key: ClientKey, connection: PairConnection, now_ms: int) -> RequestContext:
        """The request that a record appears to come from."""
        return RequestContext(connection, PUSH_TELEMETRY, 0, 0, key.client_id, now_ms)

    def wanted_by(self, instance: ClientMetricsInstance) -> frozenset[str]:
        """The names of the metrics in a client's plan."""
        prefixes = instance.plan.metrics
        wanted = self.wanted.get(prefixes)
        if wanted is None:
            wanted = self.wanted[prefixes] = wanted_names(prefixes)
        return wanted

    def evict(self) -> None:
        """Forget the least recently used client, after its last payload."""
        watched = next(iter(self.clients.values()))
        self.evicted += 1
        self.write(watched)
        for pair in list(watched.account.pairs):
            pair.leave()
        self.forget(watched)

    def forget(self, watched: Watched) -> None:
        key = watched.account.key
        del self.clients[key]
        ids = self.client_ids[key.address]
        ids[key.client_id] -= 1
        if not ids[key.client_id]:
            del ids[key.client_id]
            if not ids:
                del self.client_ids[key.address]

    # Windows

    def schedule(self, watched: Watched, now_monotonic_ms: int, *, first: bool) -> None:
        """Set the end of a window. First windows are shorter, so that clients do not all end together."""
        interval_ms = watched.instance.push_interval_ms
        if first:
            share = int.from_bytes(watched.account.instance_id[:2]) / 65_536
            interval_ms = max(int(interval_ms * (0.5 + share / 2)), 1)
        account = watched.account
        account.due_ms = now_monotonic_ms + interval_ms
        heapq.heappush(self.ends, (account.due_ms, next(self.serial), watched))

    def turn(self) -> None:
        """End the windows that are due, as many as a turn has time for."""
        started_ns, now_monotonic_ms = self.clock.monotonic_ns(), self.clock.monotonic_ms()
        if self.version != self.source.subscription_version:
            self.version = self.source.subscription_version
            self.wanted.clear()
            self.outdated = deque(self.clients.values())
        is_more = True
        while self.clock.monotonic_ns() - started_ns < TURN_NS:
            is_more = self.step(now_monotonic_ms)
            if not is_more:
                break
        next_ms = now_monotonic_ms + CHECK_MS
        if is_more:
            next_ms = now_monotonic_ms + PAUSE_MS
        elif self.ends:
            next_ms = max(min(next_ms, self.ends[0][0]), now_monotonic_ms + PAUSE_MS)
        self.task = self.timer.schedule(next_ms, self.turn)

    def step(self, now_monotonic_ms: int) -> bool:
        """Do the work for one client; False if there is none."""
        if self.outdated:
            self.replan(self.outdated.popleft())
            return True
        if not self.ends or self.ends[0][0] > now_monotonic_ms:
            return False
        due_ms, _, watched = heapq.heappop(self.ends)
        if watched.account.due_ms == due_ms and self.clients.get(watched.account.key) is watched:
            self.end_window(watched)
        return True

    def replan(self, watched: Watched) -> None:
        """Look up a client's plan after the subscriptions changed. Another plan begins a new window."""
        account = watched.account
        if self.clients.get(account.key) is not watched:
            return
        now_ms, now_monotonic_ms = self.clock.now_ms(), self.clock.monotonic_ms()
        context = self.context(account.key, watched.connection, now_ms)
        instance = self.source.instance(account.instance_id, context)
        if instance.plan == watched.instance.plan:
            return
        self.write(watched)
        wanted = self.wanted_by(instance)
        self.late += bool(wanted and not watched.wanted)
        account.clear(now_ms, now_monotonic_ms)
        instance.inherit_labels(watched.instance)
        watched.instance, watched.wanted = instance, wanted
        self.schedule(watched, now_monotonic_ms, first=True)

    def end_window(self, watched: Watched) -> None:
        """Write the payload of a window that has ended, and begin the next one."""
        account = watched.account
        is_quiet = account.is_quiet
        self.write(watched)
        for pair in [pair for pair in account.pairs if pair.is_moved]:
            pair.leave()
        if not account.pairs:
            self.note_members(account)
            self.forget(watched)
            if self.is_reported(watched):
                self.ended(watched)
            return
        if not is_quiet:
            self.clients.move_to_end(account.key)
        now_monotonic_ms = self.clock.monotonic_ms()
        account.clear(self.clock.now_ms(), now_monotonic_ms)
        self.schedule(watched, now_monotonic_ms, first=False)

    def ended(self, watched: Watched) -> None:
        """A client has no connection any more."""
        account = watched.account
        self.goodbyes.has_ended(account.key.place)
        if not account.has_left:
            context = self.context(account.key, watched.connection, self.clock.now_ms())
            watched.instance.resource = encoded_resource(resource(account))
            why = CONNECTION if account.torn else GROUP
            self.goodbyes.lose(Seen(watched.instance, context, observed=True), why, account.closed_ms)

    def write(self, watched: Watched) -> None:
        """Write the payload of the window, if anything in it is wanted; or the end of one that pushes now."""
        account = watched.account
        for pair in account.pairs:
            self.note_uses(account, pair)
        is_reported, now_ms = self.is_reported(watched), self.clock.now_ms()
        payload = b"" if watched.told else None
        if is_reported:
            payload = report(account, watched.wanted, now_ms, self.clock.monotonic_ms(), self.name_of)
        if payload is not None:
            context = self.context(account.key, watched.connection, now_ms)
            has_left = not is_reported or (not account.pairs and account.has_left)
            self.source.offer(watched.instance, context, payload, terminating=has_left)
            watched.told = not has_left

    def is_reported(self, watched: Watched) -> bool:
        """Whether anything is written about a client: not if it pushes, or no subscription selects it."""
        observe = self.settings.observe
        pushes = watched.account.pushes and observe is Observe.SILENT
        return bool(watched.wanted) and not pushes and observe is not Observe.NONE

    def look_at_uses(self) -> Steps:
        """Note which topics each connection uses, one after the other."""
        for watched in list(self.clients.values()):
            for pair in list(watched.account.pairs):
                self.note_uses(watched.account, pair)
            yield None

    def note_uses(self, account: ClientAccount, pair: OpenPair) -> None:
        """Note which topics a connection has used since the last look, and how much."""
        written = pair.take_written()
        for topic, produced in written.items():
            account.topic(topic).produced.merge(produced)
        read: Collection[str | bytes] = ()
        if pair.fetches is not None:
            read = pair.fetches.topics_read()
            for topic, records in pair.fetches.take_read().items():
                account.topic(topic).read_records += records
        if self.topology is None:
            return
        key, now_ms = account.key, self.clock.now_ms()
        client = Client(key.client_id, key.address, key.principal, key.software_name, key.software_version)
        for topic in written:
            self.topology.note(client, topic, writes=True, now_ms=now_ms)
        for topic in read:
            self.topology.note(client, topic, writes=False, now_ms=now_ms)

    def readings(self) -> Iterator[tuple[Reader, Reading]]:
        """What each connection reads, one after the other."""
        if self.fetch_watch is not None:
            yield from self.fetch_watch.readings([each.account for each in self.clients.values()])

    def known(self, key: ClientKey) -> Known | None:
        """A client that is reported."""
        watched = self.clients.get(key)
        if watched is None or not self.is_reported(watched):
            return None
        return Known(watched.connection, resource(watched.account))

    def note_members(self, account: ClientAccount) -> None:
        """Remember for a moment in which groups a client was that is forgotten."""
        now_ms = self.clock.monotonic_ms()
        while self.left_behind and self.left_behind[0][0] < now_ms:
            self.left_behind.popleft()
        if account.memberships.members:
            until_ms = now_ms + 2 * GOODBYE_MS
            self.left_behind.append((until_ms, account.key.place, len(account.memberships.members)))

    def members(self) -> Counter[Place]:
        """The members of groups that the observed clients are, or were when they closed a moment ago."""
        found, now_ms = Counter[Place](), self.clock.monotonic_ms()
        for key, watched in self.clients.items():
            found[key.place] += len(watched.account.memberships.members)
        for until_ms, place, members in self.left_behind:
            if until_ms >= now_ms:
                found[place] += members
        return found

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the observation itself."""
        return OBSERVED.rows(self)

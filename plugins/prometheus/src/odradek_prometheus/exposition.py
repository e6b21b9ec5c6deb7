"""The series that Prometheus gets from the pushes of clients: names, labels, totals, and ends.

An exposition belongs to one destination. It has pictures of all clients, made after each commit of the
totals, so nothing is shown that a crash could take back. It reads no clock and no file.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from odradek.otlp import body_start
from odradek.plugin import ConfigError, Forwarder, PluginConfig, TelemetryRecord
from odradek.settings import Flag, Items, Special, declare
from odradek.temporality import Counts, CumulativeForwarder, Engine, Limits, TotalsSettings
from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.member import is_other
from odradek.temporality.budgets.policy import BudgetLimits
from odradek.temporality.client_state import ClientState
from odradek.temporality.clients import silence_ms
from odradek.temporality.shape import Shape
from odradek.temporality.stream_key import Identity
from odradek_prometheus.apps import Apps
from odradek_prometheus.client_labels import (
    DEFAULT_SHOWN,
    INSTANCE,
    Facts,
    facts_of,
    read_facts,
    serialized_resource,
)
from odradek_prometheus.client_series import ClientSeries, Ended, picture
from odradek_prometheus.families import MAX_LOGGED, Families
from odradek_prometheus.mapped_streams import MappedStreams, StreamMapping
from odradek_prometheus.shown_engine import ShownEngine

log = logging.getLogger(__name__)

LINGER_MS: Final = 300_000
PREFIX_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:")
LEAST_DESCRIBED: Final = 10_000
SWEEP_AT: Final = 256
"""Fewer shapes are not looked through for unused ones."""
NO_STREAMS: frozenset[Identity] = frozenset()


def read_prefix(config: PluginConfig, key: str) -> str:
    """Read the beginning of the names of metrics.

    Raises:
        ConfigError: It has other characters than the names of Prometheus.
    """
    text = config.text(key) or ""
    if not PREFIX_CHARACTERS.issuperset(text):
        raise config.error(key, f"expected letters, digits, _ and :, found {text!r}")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpositionSettings:
    """Names and labels, and how long series stay."""

    linger_ms: int = LINGER_MS
    """How long the series of a client stay after its goodbye."""
    budgets: BudgetLimits = field(default_factory=BudgetLimits)
    apps: Apps = field(default_factory=Apps)
    # fmt: off
    prefix: str = declare(
        "prefix", Special(shape="text", read=read_prefix), "",
        "The beginning of the name of each metric of a client.", unset="none",
    )
    labels: Sequence[str] = declare(
        "labels", Items(), DEFAULT_SHOWN,
        "The labels of a client that each of its series has; `client_instance_id` must be one of them.",
        unset="[see below](#labels)",
    )
    normalise_node: bool = declare(
        "normalise.node", Flag(), True,
        "Show the `node_id` of Java clients as a number, as librdkafka does: `node-1` as `1`, the connection "
        "to a coordinator as `coordinator-1`. `false`: as they send it.",
    )
    # fmt: on

    def check(self) -> None:
        """Refuse labels that do not tell clients apart.

        Raises:
            ConfigError: The client instance id is not among them.
        """
        if INSTANCE not in self.labels:
            raise ConfigError(
                "labels", f"expected {INSTANCE} among them: it tells the series of clients apart"
            )


class Update(NamedTuple):
    """The outcome of a batch."""

    touched: Sequence[ClientSeries]
    """The clients of the batch, each once."""
    ended: Sequence[Ended]


class Exposition:
    """The clients of one destination."""

    def __init__(self, settings: ExpositionSettings) -> None:
        self.settings = settings
        self.mapping = StreamMapping(Families(settings.prefix), normalise_node=settings.normalise_node)
        self.totals: CumulativeForwarder | None = None
        self.pictures: dict[bytes, ClientSeries] = {}
        self.engines: dict[int, Engine] = {}
        """The engines by part whose clients have pictures."""
        self.described: dict[bytes, int] = {}
        """A hash of the Resource and request that the facts of each client were made from."""
        self.most_described = LEAST_DESCRIBED
        self.new_streams: dict[bytes, frozenset[Identity]] = {}
        """The streams of clients whose first point came since their last picture."""
        self.shapes: dict[Shape, MappedStreams] = {}
        self.sweep_at = SWEEP_AT
        """The number of shapes at which those without clients are looked for."""
        self.logged: set[str] = set()
        self.ends: list[tuple[int, bytes]] = []
        """A heap of the times to look after each client."""

    def wrap(self, inner: Forwarder, totals: TotalsSettings) -> CumulativeForwarder:
        """The forwarder for the host: adds and commits a batch before ``inner`` delivers it."""

        def make_engine(limits: Limits, counts: Counts) -> Engine:
            # The limits of an engine of one of several parts are its share, and so are the budgets.
            parts = max(1, totals.limits.max_streams // limits.max_streams)
            budgets, apps = self.settings.budgets.share(parts), self.settings.apps
            return ShownEngine(self, limits, counts, totals.ignored_attributes, budgets, apps.facts)

        self.totals = CumulativeForwarder(inner, totals, make_engine)
        return self.totals

    def note_new(self, instance_id: bytes, client: ClientState, shape: Shape, data: bytes) -> None:
        """Note the streams of an instance that an earlier shape does not have.

        Args:
            instance_id: The instance.
            client: Its state.
            shape: The earlier shape.
            data: The push that has brought them; may be empty.
        """
        old = set(shape.keys)
        new = [client.shape.known.identity(key) for key in client.shape.keys if key not in old]
        self.new_streams[instance_id] = self.new_streams.get(instance_id, NO_STREAMS).union(new)
        if data:
            self.mapping.families.describe({each.name for each in new}, data)

    def note(self, record: TelemetryRecord, old: bytes) -> bytes:
        """The note of a client after a record."""
        instance_id, data = record.payload.client_instance_id, record.payload.data
        if not data and old:
            return old
        split = body_start(data) if data else None
        resource = data[split[0] : split[1]] if split else serialized_resource(data)
        known = hash((resource, origin_of(record)))
        if old and self.described.get(instance_id) == known:
            return old
        self.described[instance_id] = known
        if len(self.described) > self.most_described:
            self.described = {each: told for each, told in self.described.items() if self.state_of(each)}
            self.most_described = LEAST_DESCRIBED + 2 * len(self.described)
        return facts_of(record, resource).stored()

    def load(self, now_ms: int) -> None:
        """Make pictures of the clients in the file of the totals.

        A topic of totals belongs to several processes: to load a part would take it from another one.
        """
        assert self.totals is not None
        store = self.totals.store
        if store is not None and self.totals.settings.file is not None:
            self.totals.engine_of(store, 0)
        self.look_at_engines(now_ms)

    def update(self, batch: Sequence[TelemetryRecord]) -> Update:
        """Make pictures of the clients of a batch that was committed."""
        times: dict[bytes, int] = {}
        for record in batch:
            times.setdefault(record.payload.client_instance_id, record.context.received_ms)
        newest_ms = max(record.context.received_ms for record in batch)
        self.look_at_engines(newest_ms)
        touched: list[ClientSeries] = []
        ended: list[Ended] = []
        for engine in self.engines.values():
            assert isinstance(engine, ShownEngine)
            times |= dict.fromkeys(engine.take_others(), min(times.values()))
        for instance_id, since_ms in times.items():
            after, gone = self.draw(instance_id, since_ms)
            ended += gone
            if after is not None:
                touched.append(after)
        return Update(touched, ended)

    def draw(self, instance_id: bytes, since_ms: int) -> tuple[ClientSeries | None, list[Ended]]:
        """Make the picture of a client that has sent a record; return it and the series that it ends."""
        client = self.state_of(instance_id)
        before = self.pictures.get(instance_id)
        new_streams = self.new_streams.pop(instance_id, NO_STREAMS)
        if client is None or client.folded:
            return None, self.remove(instance_id, since_ms)
        after = self.picture_of(instance_id, client, client.last_ms, since_ms, new_streams)
        ended = before.ended(after, client.last_ms) if before is not None else []
        if client.closed and not self.settings.linger_ms:
            self.pictures.pop(instance_id, None)
            return after, ended + after.ended(None, client.last_ms + 1)
        self.show(after, is_new=before is None)
        return after, ended

    def expire(self, now_ms: int) -> list[Ended]:
        """The series that have ended by their silence since the last call."""
        self.look_at_engines(now_ms)
        ended: list[Ended] = []
        while self.ends and self.ends[0][0] <= now_ms:
            _, instance_id = heapq.heappop(self.ends)
            before = self.pictures.get(instance_id)
            client = self.state_of(instance_id)
            if before is None:
                continue
            due_ms = before.next_end_ms(self.settings.linger_ms)
            if due_ms > now_ms:
                heapq.heappush(self.ends, (due_ms, instance_id))
            elif client is None or not self.is_shown(client, now_ms):
                ended += self.remove(instance_id, now_ms)
            else:
                after = self.picture_of(instance_id, client, now_ms, before.since_ms)
                ended += before.ended(after, now_ms)
                self.show(after, is_new=True)
        return ended

    def foldings(self, now_ms: int) -> list[Folding]:
        """The budgets of the engines, without clients that have been silent for too long."""
        found = [engine.folding for engine in self.engines.values() if isinstance(engine, ShownEngine)]
        for folding in found:
            folding.sweep(now_ms)
        return found

    def is_shown(self, client: ClientState, now_ms: int) -> bool:
        """Whether a client has series of its own at this time."""
        if client.folded:
            return False
        silent_ms = now_ms - client.last_ms
        return silent_ms <= (self.settings.linger_ms if client.closed else silence_ms(client.interval_ms))

    def clients(self) -> list[ClientSeries]:
        """The pictures of all clients with series, as of the last batch."""
        return list(self.pictures.values())

    def client(self, instance_id: bytes) -> ClientSeries | None:
        """The picture of a client; None if it is not shown."""
        return self.pictures.get(instance_id)

    def engine_of(self, instance_id: bytes) -> Engine | None:
        """The engine that has a client."""
        return next((each for each in self.engines.values() if instance_id in each.clients.states), None)

    def state_of(self, instance_id: bytes) -> ClientState | None:
        engine = self.engine_of(instance_id)
        return engine.clients.states.get(instance_id) if engine is not None else None

    def look_at_engines(self, now_ms: int) -> None:
        """Follow the engines: show the clients of new ones, and forget those of engines that are gone."""
        assert self.totals is not None
        current = self.totals.engines
        if current == self.engines:
            return
        self.engines = dict(current)
        for instance_id in [each for each in self.pictures if self.state_of(each) is None]:
            # Another process has them now: they have not ended.
            del self.pictures[instance_id]
        for engine in current.values():
            for instance_id, client in engine.clients.states.items():
                if instance_id not in self.pictures and self.is_shown(client, now_ms):
                    self.show(self.picture_of(instance_id, client, now_ms, client.last_ms), is_new=True)

    def show(self, after: ClientSeries, *, is_new: bool) -> None:
        self.pictures[after.instance_id] = after
        if is_new:
            heapq.heappush(self.ends, (after.next_end_ms(self.settings.linger_ms), after.instance_id))

    def remove(self, instance_id: bytes, time_ms: int) -> list[Ended]:
        before = self.pictures.pop(instance_id, None)
        return before.ended(None, time_ms) if before is not None else []

    def picture_of(
        self,
        instance_id: bytes,
        client: ClientState,
        now_ms: int,
        since_ms: int,
        new_streams: frozenset[Identity] = NO_STREAMS,
    ) -> ClientSeries:
        before = self.pictures.get(instance_id)
        if before is not None and before.note == client.note:
            facts = (before.facts, before.shown)
        else:
            known = read_facts(client.note)
            facts = (known, known if is_other(instance_id) else known.shown(self.settings.labels))
        mapped = self.mapped(client.shape)
        if before is None or (before.mapped, before.shown) != (mapped, facts[1]):
            self.log_renamed(mapped, facts[1])
        return picture(instance_id, client, mapped, facts, now_ms, since_ms, new_streams)

    def log_renamed(self, mapped: MappedStreams, shown: Facts) -> None:
        """Log each label of clients that is renamed, once."""
        for name in sorted(shown.names & mapped.names - self.logged):
            if len(self.logged) < MAX_LOGGED:
                self.logged.add(name)
                problem = "a label of clients has the name of a data point's label, and is renamed beside it"
                log.warning(problem, extra={"label": name})

    def mapped(self, shape: Shape) -> MappedStreams:
        """The series of a shape."""
        found = self.shapes.get(shape)
        if found is None:
            if len(self.shapes) >= self.sweep_at:
                self.shapes = {each: mapped for each, mapped in self.shapes.items() if each.users}
                used = {family for each in self.shapes.values() for family in each.by_family}
                self.mapping.families.keep(used)
                self.sweep_at = max(SWEEP_AT, 2 * len(self.shapes))
            found = self.shapes[shape] = self.mapping.mapped(shape.identities)
        return found


def origin_of(record: TelemetryRecord) -> tuple[object, ...]:
    """The facts besides its Resource that the labels of a record are made from."""
    connection = record.context.connection
    return (
        record.context.client_id,
        connection.client_software_name,
        connection.client_software_version,
        connection.client_address,
        connection.client_port,
        connection.principal,
        connection.node_id,
        connection.cluster_id,
    )

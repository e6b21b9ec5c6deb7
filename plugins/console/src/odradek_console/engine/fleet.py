"""All clients: inventory, totals and last hours, within bounds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from odradek.findings.troubles import (
    CLOCK_SKEW,
    DEFECTS,
    EXPLAINED,
    LOSS_ENDS_S,
    OVERSIZE,
    SILENCE,
    STEPS,
    THROTTLED,
    UNEVEN,
    UNSUPPORTED,
    Kind,
)
from odradek.otlp import NotOtlp
from odradek.plugin import TelemetryRecord
from odradek.settings import declare
from odradek.temporality import Engine, Limits
from odradek.temporality.client_state import ClientState
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import ClientEntry, State
from odradek_console.engine.client_series import ClientSeries, ShapePlaces
from odradek_console.engine.findings import Finding, Life, Made, findings_of, held, of_group
from odradek_console.engine.groups import Groups
from odradek_console.engine.heard import Heard
from odradek_console.engine.identities import Identities
from odradek_console.engine.lags import TROUBLES, Lags
from odradek_console.engine.libraries import DAY_MS, defects_of, library_of, silence_of, support_of
from odradek_console.engine.owners import Owners
from odradek_console.json_form import JsonRow
from odradek_console.setting_kinds import COUNT, MILLISECONDS

ENDED_MS: Final = 900_000
"""A finding that is over can be read for so long."""
MUTED_MS: Final = 900_000
"""A client that was throttled is not lost for so long."""
STORM: Final = "rebalance-storm"
LOST: Final = "lost"
OF_PUSHES: Final = frozenset({LOST, "silent"})
"""Troubles of one way to know a client: as long as there is another way, they are none of the client."""
LEAST_SCALE: Final = 0.01
SHRINK: Final = 0.7
SEARCH_MS: Final = 1_000
"""Time of the records between two searches for clients that can be forgotten."""
SKIP_EVERY: Final = 1_000
"""Records between two calls of `Engine.skip_changes`."""
NS_PER_MS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLimits:
    """Bounds of the memory."""

    # fmt: off
    max_clients: int = declare(
        "max.clients", COUNT, 20_000, "Client instances that are known.", unit="clients",
    )
    max_series: int = declare("max.series", COUNT, 1_500_000, "Series of all clients.", unit="series")
    max_totals_bytes: int = declare(
        "max.totals.bytes", COUNT, 256 << 20, "Memory of totals.", unit="bytes",
    )
    max_history_bytes: int = declare(
        "max.history.bytes", COUNT, 384 << 20, "Memory of histories.", unit="bytes",
    )
    retain_ms: int = declare(
        "retain.ms", MILLISECONDS, 12 * 3_600_000, "A client that is gone is forgotten after this time.",
        unit="ms", option="--retain",
    )
    # fmt: on


@dataclass(slots=True)
class FleetCounts(JsonRow):
    """Counts of records that were read, and of those that were left out."""

    records: int = 0
    repeated_records: int = 0
    malformed_records: int = 0
    not_otlp_records: int = 0
    failed_records: int = 0
    """Records that could not be added; the log has the reason."""
    left_out_records: int = 0
    """Records of clients for which there was no room."""
    evicted_clients: int = 0
    """Clients that were gone or silent and made room for others."""
    shortened_histories: int = 0
    """The times that all histories were made shorter for lack of memory."""


class Fleet:
    """The clients of a topic. Not thread-safe.

    Args:
        limits: Bounds of the memory.
        owners: Teams.
    """

    def __init__(self, limits: FleetLimits | None = None, owners: Owners | None = None) -> None:
        self.limits = limits or FleetLimits()
        self.owners = owners or Owners()
        self.counts = FleetCounts()
        self.engine = Engine(
            Limits(
                max_streams=self.limits.max_series,
                max_bytes=self.limits.max_totals_bytes,
                retain_ms=self.limits.retain_ms,
                linger_ms=self.limits.retain_ms,
            ),
            keep_gauges=True,
        )
        self.clients: OrderedDict[bytes, Client] = OrderedDict()
        """By instance id, the one that pushed last at the end."""
        self.identities = Identities()
        self.lags = Lags()
        """Of groups, which are no clients."""
        self.places = ShapePlaces()
        self.history_bytes = 0
        self.searched_ms = -SEARCH_MS
        """When all clients were live and none could be forgotten."""
        self.scale = 1.0
        """Part of their full length that histories have."""
        self.groups = Groups(self.each_once, self.series)
        self.heard: dict[str, Heard] = {}
        """By gateway or broker."""

    def add(self, record: TelemetryRecord) -> None:
        """Add a record of the topic. One that was added before changes nothing."""
        if not record.is_of_client:
            self.lags.add(record)
            return
        before = self.engine.counts.repeated_records
        instance_id = record.payload.client_instance_id
        client = self.client_of(record)
        if client is None:
            self.counts.left_out_records += 1
            return
        try:
            self.engine.convert(record)
        except NotOtlp:
            self.counts.not_otlp_records += 1
        if self.engine.counts.repeated_records != before:
            self.counts.repeated_records += 1
            if not client.entry.pushes:
                self.forget(instance_id)  # it was forgotten before
            return
        self.counts.records += 1
        entry = client.entry
        entry.add(record)
        entry.heard = self.heard.setdefault(record_place(entry, record), Heard())
        entry.away_ms = entry.heard.push(instance_id, record.context.received_ms, entry.interval_ms)
        self.identities.add(client)
        self.clients.move_to_end(instance_id)
        state = self.engine.clients.states.get(instance_id)
        if state is not None and record.payload.data:
            self.add_row(client, state, record.context.received_ms)
        if not self.counts.records % SKIP_EVERY:
            self.engine.skip_changes()

    def client_of(self, record: TelemetryRecord) -> Client | None:
        """The client of a record; None if there is no room for a new one."""
        instance_id, now_ms = record.payload.client_instance_id, record.context.received_ms
        found = self.clients.get(instance_id)
        if found is None:
            if len(self.clients) >= self.limits.max_clients and not self.make_room(now_ms):
                return None
            found = self.clients[instance_id] = Client(ClientEntry(record))
            self.history_bytes += found.history.held_bytes
        return found

    def make_room(self, now_ms: int) -> bool:
        """Forget some clients that are gone, else some silent ones; False if all are live.

        All clients are looked at, so this happens seldom: several are forgotten at a time, and after a search
        in vain the next one is a second later.
        """
        if abs(now_ms - self.searched_ms) < SEARCH_MS:
            return False
        ended: dict[State, list[bytes]] = {State.GONE: [], State.SILENT: [], State.LIVE: []}
        for instance_id, client in self.clients.items():
            ended[client.entry.state(now_ms)].append(instance_id)
        found = (ended[State.GONE] or ended[State.SILENT])[: max(1, self.limits.max_clients // 100)]
        for instance_id in found:
            self.forget(instance_id)
        self.counts.evicted_clients += len(found)
        if not found:
            self.searched_ms = now_ms
        return bool(found)

    def forget(self, instance_id: bytes) -> None:
        client = self.clients.pop(instance_id)
        self.identities.remove(client)
        self.history_bytes -= client.history.held_bytes
        if instance_id in self.engine.clients.states:
            self.engine.clients.forget(instance_id)

    def expire(self, now_ms: int) -> None:
        """Forget clients that are gone for long."""
        for instance_id, client in list(self.clients.items()):
            if now_ms - client.entry.last_ms <= self.limits.retain_ms:
                break
            self.forget(instance_id)
        self.lags.read(now_ms)

    def add_row(self, client: Client, state: ClientState, now_ms: int) -> None:
        """Add the values of a push to its client's history."""
        entry, history = client.entry, client.history
        before = history.held_bytes
        if now_ms < entry.last_ms:
            return  # the clock of the host was set back: its rows stay in order
        history.add(now_ms, state, self.scale)
        if entry.observed:
            client.latency.add(state, self.places.of(state.shape), now_ms)
        self.history_bytes += history.held_bytes - before
        newest_ns = max(state.times[1::2], default=0)
        if newest_ns:
            entry.skew_ms = entry.last_ms - newest_ns // NS_PER_MS
        while self.history_bytes > self.limits.max_history_bytes and self.scale > LEAST_SCALE:
            self.shorten()

    def shorten(self) -> None:
        """Make all histories shorter."""
        self.scale *= SHRINK
        self.counts.shortened_histories += 1
        for client in self.clients.values():
            before = client.history.held_bytes
            client.history.age(client.entry.last_ms, self.scale)
            self.history_bytes += client.history.held_bytes - before

    @property
    def held_bytes(self) -> int:
        """Approximate memory of everything."""
        entries = sum(each.entry.held_bytes for each in self.clients.values())
        return self.history_bytes + self.engine.held_bytes + entries

    def series(self, client: Client) -> ClientSeries | None:
        """The series of a client; None if it has none."""
        shape = client.history.shape
        return None if shape is None else ClientSeries(client.history, self.places.of(shape))

    def findings(self, client: Client, now_ms: int) -> list[Finding]:
        """The troubles of a client, and notes about it."""
        return [each for each in self.told(client, now_ms) if each.kind is not Kind.SHARED]

    def told(self, client: Client, now_ms: int) -> list[Finding]:
        """Also what means something only if many have it."""
        found = self.going_on(client, now_ms)
        known = {each.id for each in found} | OF_PUSHES
        for part in self.identities.parts(client):
            found += [each for each in self.going_on(part, now_ms) if each.id not in known]
        shown = {(each.id, each.labels): each for each in found if each.kind is not Kind.SHARED}
        for key, before in client.shown.items():
            ended_ms = before.ended_ms or now_ms
            if key not in shown and before.kind != Kind.NOTE and now_ms - ended_ms < ENDED_MS:
                shown[key] = replace(before, ended_ms=ended_ms)
        client.shown = shown
        return found

    def ended(self, client: Client, now_ms: int) -> list[Finding]:
        """The findings of a client that were over a short time ago, the newest first."""
        over = [each for each in client.shown.values() if now_ms - ENDED_MS < each.ended_ms <= now_ms]
        return sorted(over, key=lambda each: -each.ended_ms)

    def going_on(self, client: Client, now_ms: int) -> list[Finding]:
        """What is wrong with a client now."""
        entry = client.entry
        library = library_of(entry.software, entry.version)
        state, is_muted = self.state(client, now_ms), self.is_muted(client, now_ms)
        life = Life(entry.first_ms, entry.interval_ms, now_ms if is_muted else 0)
        if is_muted or not entry.is_checked:
            defects = defects_of(entry.software, entry.version)
            distrusted = frozenset(name for each in defects for name in each.wrong)
            client.found = findings_of(library, self.series(client), {}, life, distrusted)
            entry.is_checked = True
        if state is State.GONE:
            is_new = now_ms - entry.last_ms < LOSS_ENDS_S * 1000
            return [each for each in client.found if each.kind == Kind.LOSS and is_new]
        made = findings_of(library, None, dict(self.made(client, state, now_ms)), life)
        if state is State.SILENT:
            return [each for each in client.found if each.id == LOST] or made
        window_ms = STEPS * life.step_ms
        explained = EXPLAINED * (
            self.groups.changes(entry.group_id, entry.last_ms - window_ms, now_ms)
            if any(each.id == STORM for each in client.found)
            else 0
        )
        own = [each for each in client.found if each.id != STORM or each.value > explained]
        address = entry.connections[-1].address if entry.connections else ""
        measured = self.lags.troubles(entry.group_id, (entry.client_id, address))
        if measured is not None:
            own = [each for each in own if each.id not in TROUBLES.values()]
            own += of_group(measured, self.series(client), life)
        return [*made, *own]

    def state(self, client: Client, now_ms: int) -> State:
        """Whether a client pushes, or its quota holds it back."""
        return State.LIVE if self.is_muted(client, now_ms) else client.entry.state(now_ms)

    def is_muted(self, client: Client, now_ms: int) -> bool:
        """Whether a client sends no push because its quota holds back all that it sends."""
        entry = client.entry
        if entry.state(now_ms) is not State.SILENT or now_ms - entry.last_ms > MUTED_MS:
            return False
        series = self.series(client)
        return series is not None and any(held(series, each, entry.last_ms) for each in THROTTLED)

    def check(self, at_most: int, now_ms: int) -> bool:
        """Look for findings of clients that have pushed since they were asked for; whether all are done."""
        waiting = self.unchecked()
        for client in waiting[:at_most]:
            self.findings(client, now_ms)
        return len(waiting) <= at_most

    def each_once(self) -> list[Client]:
        """The clients that have a row, each client once."""
        return [each for each in self.clients.values() if self.identities.face(each) is each]

    def unchecked(self) -> list[Client]:
        """Clients that have pushed since their findings were asked for, the one that waits longest first."""
        waiting = takewhile(lambda each: not each.entry.is_checked, reversed(self.clients.values()))
        return list(waiting)[::-1]

    def made(self, client: Client, state: State, now_ms: int) -> Iterator[tuple[str, Sequence[Made]]]:
        """The values of metrics that no client sends."""
        entry = client.entry
        if state is State.SILENT and entry.interval_ms:
            silent = (now_ms - entry.last_ms) / entry.interval_ms
            known = silence_of(entry.software, entry.version)
            why = f"{known.problem} {known.source}" if known is not None else ""
            yield SILENCE, [Made(value=silent, since_ms=entry.last_ms, detail=why)]
        if not entry.source and not entry.observed:
            # A record that a collector or a gateway made does not tell the clock of the client.
            yield CLOCK_SKEW, [Made(value=abs(entry.skew_ms) / 1000, since_ms=entry.last_ms)]
        yield OVERSIZE, [Made(value=entry.oversize, since_ms=entry.last_error_ms)]
        yield (
            DEFECTS,
            [
                Made(
                    value=1,
                    since_ms=entry.first_ms,
                    detail=f"{each.problem} {each.source}",
                    advice=f"Upgrade the library to {each.fixed_text} or later.",
                )
                for each in defects_of(entry.software, entry.version)
            ],
        )
        support = support_of(entry.software, entry.version)
        if support is not None:
            days = (now_ms - support.ended_ms) // DAY_MS
            advice = f"Upgrade the library to {support.before_text} or later."
            yield (
                UNSUPPORTED,
                [Made(value=days, since_ms=support.ended_ms, detail=support.source, advice=advice)],
            )
        share = self.groups.share(entry, now_ms)
        if share is not None:
            yield UNEVEN, [Made(value=share, since_ms=entry.last_ms)]


def record_place(entry: ClientEntry, record: TelemetryRecord) -> str:
    """Where a client is heard: its gateway, else the broker."""
    connection = record.context.connection
    return entry.label("gateway") or f"{connection.cluster_id}/{connection.node_id}"

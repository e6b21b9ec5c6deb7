"""Clients whose series have budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.plugin import Origin
from odradek.temporality import Limits
from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.member import facts_of_other
from odradek.temporality.budgets.other_streams import labels_of
from odradek.temporality.budgets.policy import BudgetLimits
from odradek.temporality.budgets.series_counts import ClientFacts
from odradek.temporality.stream_key import Identity, Kind
from support.delta_clients import INTERVAL_S, TOPIC, Scene, Store, counter, ms, point

NO_BUDGET: dict[str, Any] = {
    "series": 0,
    "principal_series": 0,
    "app_series": 0,
    "client_series": 0,
    "label_values": 0,
}
FOREVER_MS = 10**12


def instance(number: int) -> bytes:
    return number.to_bytes(16, "big")


def facts(app: str = "shop", principal: str = "alice", software: str = "java") -> ClientFacts:
    return ClientFacts(app, principal, software, f"{app}-1")


def metric(name: str, value: float, at: float, **attributes: str | int) -> Metric:
    """A counter with a delta over the last interval."""
    return counter(point(value, at - INTERVAL_S, at, attributes), name=name)


def gauge(name: str, value: float, at: float, **attributes: str | int) -> Metric:
    found = Metric(name=name)
    found.gauge.data_points.append(point(value, None, at, attributes))
    return found


class BudgetScene:
    """An engine with budgets, and the log that it reads. Budgets that are not named are none."""

    def __init__(self, **budgets: Any) -> None:
        self.limits = BudgetLimits(**{**NO_BUDGET, **budgets})
        self.scene = Scene(keep_gauges=True, limits=Limits(retain_ms=FOREVER_MS, linger_ms=FOREVER_MS))
        self.folding = Folding(self.scene.engine, self.limits)
        self.facts: dict[bytes, ClientFacts] = {}
        self.now = 0.0
        self.ended: dict[tuple[bytes, Identity], float] = {}
        """Counters of clients that had their own series before they were folded."""
        self.committed = dict(self.ended)

    @property
    def now_ms(self) -> int:
        return ms(self.now)

    def push(
        self,
        number: int,
        *metrics: Metric,
        at: float = 60,
        of: ClientFacts | None = None,
        offset: int | None = None,
        terminating: bool = False,
    ) -> None:
        self.now = at
        data = None if metrics else b""
        record = self.scene.record(
            *metrics, at=at, instance=instance(number), data=data, terminating=terminating
        )
        if offset is None:
            offset = self.scene.next_offset
        self.scene.next_offset = max(self.scene.next_offset, offset + 1)
        record.position = Origin(TOPIC, 0, offset)
        engine, known = self.scene.engine, of or facts()
        self.facts[instance(number)] = known
        before, repeated = self.folding.before(record), engine.counts.repeated_records
        own = {each.identity: each.value for each in engine.series(instance(number))}
        engine.convert(record)
        if engine.counts.repeated_records == repeated:
            self.folding.after(record, known, before)
        client = engine.clients.states.get(instance(number))
        if client is None or client.folded:
            self.ended |= {(instance(number), each): own[each] for each in own if each.kind == Kind.COUNTER}

    def commit(self, store: Store) -> None:
        self.folding.refresh(self.now_ms)
        store.commit(self.scene.engine.take_changes())
        self.committed = dict(self.ended)

    def restart(self, store: Store) -> None:
        self.scene.restart(store)
        self.folding = Folding(self.scene.engine, self.limits)
        self.folding.restore(self.facts.get)
        self.ended = dict(self.committed)

    def shown(self, at: float | None = None) -> Iterator[tuple[bytes, Identity, float]]:
        """All series: those that have ended too, without a time."""
        now_ms = None if at is None else ms(at)
        for instance_id in list(self.scene.engine.clients.states):
            for each in self.scene.engine.series(instance_id, now_ms):
                yield instance_id, each.identity, each.value

    def totals(self) -> dict[str, float]:
        """The sum of each counter over all series, ended ones included."""
        found: Counter[str] = Counter()
        for _, identity, value in self.shown():
            if identity.kind == Kind.COUNTER:
                found[identity.name] += value  # type: ignore[assignment]
        for (_, identity), value in self.ended.items():
            found[identity.name] += value  # type: ignore[assignment]
        return dict(found)

    def live(self, of: Iterable[bytes] | None = None) -> int:
        """Series that are shown of instances that have not ended."""
        chosen = set(self.folding.members.live if of is None else of)
        return sum(instance_id in chosen for instance_id, _, _ in self.shown(self.now))

    def values(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of a metric by who has them and their labels: ``("1", "topic=a")``."""
        return {
            (who(instance_id), *[f"{key}={value}" for key, value in labels_of(identity.attributes)]): value
            for instance_id, identity, value in self.shown(self.now)
            if identity.name == name
        }


def who(instance_id: bytes) -> str:
    """The number of a client, or the scope of ``other``."""
    other = facts_of_other(instance_id)
    if other is None:
        return str(int.from_bytes(instance_id, "big"))
    return f"{other.principal}/{other.app}"

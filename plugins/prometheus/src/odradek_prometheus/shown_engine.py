"""The engine of an exposition: its clients have notes with their labels, and budgets for their series."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from odradek.plugin import Origin, TelemetryRecord
from odradek.temporality import Changes, Counts, Engine, Limits
from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.member import facts_of_other, is_other
from odradek.temporality.budgets.policy import BudgetLimits, Level
from odradek.temporality.budgets.series_counts import ClientFacts
from odradek.temporality.client_state import ClientState
from odradek.temporality.shape import Shape
from odradek_prometheus.client_labels import Facts, read_facts

log = logging.getLogger(__name__)

WHOLE_CLIENT: Final = "all metrics of a client"
LONGEST_STEP_MS: Final = 60_000
"""Time that may pass from commit to commit: a record with a wrong time must not end all clients."""


class Notes(Protocol):
    """An exposition, as its engines use it."""

    def note(self, record: TelemetryRecord, old: bytes) -> bytes:
        """The note of a client after a record."""

    def note_new(self, instance_id: bytes, client: ClientState, shape: Shape, data: bytes) -> None:
        """Note the streams of an instance that an earlier shape does not have."""


class ShownEngine(Engine):
    """Each record of the destination passes here."""

    def __init__(
        self,
        notes: Notes,
        limits: Limits,
        counts: Counts,
        ignored: Iterable[str],
        budgets: BudgetLimits,
        client_facts: Callable[[Facts], ClientFacts],
    ) -> None:
        super().__init__(limits, static_labels=ignored, keep_gauges=True, counts=counts)
        self.notes = notes
        self.client_facts = client_facts
        self.folding = Folding(self, budgets)
        self.other_shapes: dict[bytes, Shape] = {}
        """The streams of each ``other`` at the last commit."""
        self.now_ms = 0
        self.others: set[bytes] = set()
        """The ``other`` instances that have changed since `take_others`."""

    def convert(self, record: TelemetryRecord, *, again: bool = False) -> bytes:
        """Add a record, note the labels of its client, and apply the budgets."""
        repeated = self.counts.repeated_records
        instance_id = record.payload.client_instance_id
        known = self.clients.states.get(instance_id)
        shape = known.shape if known is not None else self.clients.shapes.empty
        has_budget = record.is_of_client  # lag is within a budget already, where it is measured
        before = self.folding.before(record) if has_budget else None
        converted = super().convert(record, again=again)
        client = self.clients.states.get(instance_id)
        if client is None:
            return converted
        if not again and self.counts.repeated_records == repeated:
            size, old = client.held_bytes, client.note
            client.note = self.notes.note(record, old)
            self.clients.resized(instance_id, client, size)
            if has_budget:
                self.folding.after(record, self.facts(instance_id, client, old), before)
        if client.shape is not shape and not client.folded:
            self.notes.note_new(instance_id, client, shape, record.payload.data)
        return converted

    def facts(self, instance_id: bytes, client: ClientState, old: bytes) -> ClientFacts:
        """The facts that decide which budgets a client counts against."""
        member = self.folding.members.live.get(instance_id)
        if member is not None and client.note == old:
            return member.facts
        return self.client_facts(read_facts(client.note))

    def take_changes(self) -> tuple[Changes, list[Origin]]:
        """The state that has changed, with the gauges of ``other`` instances."""
        newest_ms = self.clients.newest_ms
        now_ms = self.now_ms = min(newest_ms, (self.now_ms or newest_ms) + LONGEST_STEP_MS)
        self.folding.sweep(now_ms)
        for instance_id in self.folding.refresh(now_ms):
            client = self.clients.states.get(instance_id)
            if client is not None:
                client.note = client.note or labels_of_other(instance_id).stored()
                self.notes.note_new(instance_id, client, self.shape_of_other(instance_id, client), b"")
            self.others.add(instance_id)
        self.report()
        return super().take_changes()

    def shape_of_other(self, instance_id: bytes, client: ClientState) -> Shape:
        """The streams of an ``other`` at the last commit."""
        found = self.other_shapes.get(instance_id, self.clients.shapes.empty)
        self.other_shapes[instance_id] = client.shape
        return found

    def take_others(self) -> set[bytes]:
        """The ``other`` instances that have changed since the last call."""
        found, self.others = self.others, set()
        return found

    def restore(
        self, shapes: Mapping[bytes, bytes], clients: Mapping[bytes, bytes], positions: Iterable[Origin]
    ) -> None:
        """Continue from a stored state, and count its series.

        Raises:
            BadState: The state is damaged.
        """
        super().restore(shapes, clients, positions)
        states = self.clients.states
        self.other_shapes = {each: client.shape for each, client in states.items() if is_other(each)}
        self.folding.restore(self.stored_facts)

    def stored_facts(self, instance_id: bytes) -> ClientFacts | None:
        facts = read_facts(self.clients.states[instance_id].note)
        return self.client_facts(facts) if facts.is_of_client else None

    def report(self) -> None:
        """Log the budgets that were exceeded, each with a metric once an hour."""
        for each in self.folding.policy.take_exceeded():
            is_refused = each.route.level == Level.REFUSED
            log.warning(
                "series over budget are left out" if is_refused else "series over budget are part of others",
                extra={"budget": each.budget, "scope": each.scope, "metric": each.metric or WHOLE_CLIENT},
            )


def labels_of_other(instance_id: bytes) -> Facts:
    """The labels of an ``other`` instance."""
    facts = facts_of_other(instance_id)
    assert facts is not None
    return Facts(
        (
            ("client_id", facts.example),
            ("client_instance_id", facts.example),
            ("principal", facts.principal),
            ("app", facts.app),
        )
    )

"""The plugins that label clients."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from odradek.metrics.cluster_name import ClusterName
from odradek.otlp.labels import EncodedLabels, encode_labels
from odradek.plugin.config import ConfigError
from odradek.plugin.context import ConnectionContext, RequestContext
from odradek.plugin.context_labels import CLUSTER_NAME
from odradek.plugin.later import LABELS_MISSING, Invalidates, Later
from odradek.plugin.places import place_of, place_of_definition
from odradek.plugin.plugin_stats import PluginStats, described
from odradek.plugin.protocols import Enricher, TelemetryRecord
from odradek.telemetry.client_labels import (
    FOREVER_MS,
    PAST_MS,
    Answer,
    Aside,
    Changes,
    ClientLabels,
    Entry,
    Labels,
)
from odradek.telemetry.client_metrics_instance import ClientMetricsInstance
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred, outcome_of

log = logging.getLogger(__name__)

MAX_KEY_SETS: Final = 256
MAX_ELSEWHERE: Final = 4_096
"""Clients of other hosts whose labels are remembered."""
MAX_AWAITED: Final = 1_000
"""Answers of one enricher that are awaited; it is not asked for more."""
ANSWER_MS: Final = 30_000
"""How long an answer is awaited."""
RETRY_MS: Final = 10_000
"""After this time an enricher that failed is asked again."""
SAMPLE_INSTANCE_ID = bytes(15) + b"\1"
SAMPLE = RequestContext(
    connection=ConnectionContext(
        connection_id="127.0.0.1:9092-127.0.0.1:50000-0",
        listener_name="PLAINTEXT",
        security_protocol="PLAINTEXT",
        client_address="127.0.0.1",
        client_port=50_000,
        node_id=1,
        client_software_name="odradek-sample",
        client_software_version="1.0",
    ),
    api_key=72,
    api_version=0,
    correlation_id=1,
    client_id="odradek-sample",
    received_ms=0,
)
"""A request for which each enricher is asked before the first connection."""


class Inline:
    """An `Aside` without threads, for checks of a configuration."""

    def __init__(self, _name: str) -> None:
        return None

    def call(self, blocking: Callable[[], object]) -> Later:
        later = Later()
        later.outcomes.append(outcome_of(blocking))
        return later

    def run(self, later: Later) -> None:
        later.fail(RuntimeError("there is no loop here"))

    def cancel(self, later: Later) -> None:
        return None

    def on_loop(self, action: Callable[[], object]) -> None:
        action()

    def close(self, timeout_s: float) -> None:
        return None


@dataclass(slots=True, eq=False)
class Enrichers:
    """All enrichers, in the order in which their labels override each other: the last one wins. The first
    label is the name of the cluster.
    """

    clock: Clock
    timer: Timer
    cluster: ClusterName = field(default_factory=ClusterName)
    slow_ms: int = 5
    wait_ms: int = 100
    """How long a push waits for labels that come later."""
    aside: Callable[[str], Aside] = Inline
    """Where an enricher works that blocks or waits, by its name."""
    entries: list[Entry] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)
    elsewhere: OrderedDict[tuple[bytes, str], ClientLabels] = field(default_factory=OrderedDict)
    """The labels of clients whose pushes other hosts got, least recently used first."""
    key_sets: dict[frozenset[bytes], frozenset[bytes]] = field(default_factory=dict)
    """Sets of label names, stored once: nearly all clients have the same names."""

    def register(self, name: str, enricher: Enricher) -> None:
        """Add an enricher. It is asked from the next new connection of a client instance on.

        Raises:
            ConfigError: Its ``ttl_ms`` is no time, or its ``use_invalidate`` raised.
        """
        aside, blocks, ttl_ms = self.aside(name), is_blocking(enricher), getattr(enricher, "ttl_ms", None)
        if not (ttl_ms is None or (isinstance(ttl_ms, int) and ttl_ms > 0)):
            told = f"ttl_ms is {ttl_ms!r}, expected a whole number of milliseconds"
            raise ConfigError(f"plugins.{name}", told + place_of_definition(enricher.labels))
        self.entries.append(Entry(enricher, PluginStats(name), aside, blocks, ttl_ms))
        if isinstance(enricher, Invalidates):
            try:
                enricher.use_invalidate(lambda it: aside.on_loop(partial(self.changes.note, it)))
            except Exception as error:
                problem = f"use_invalidate raised {described(error)}{place_of(error)}"
                raise ConfigError(f"plugins.{name}", problem) from error

    def stats(self) -> list[PluginStats]:
        """The record of each enricher, in order of registration."""
        return [entry.stats for entry in self.entries]

    def close(self, timeout_s: float) -> None:
        """End the threads of all enrichers."""
        for entry in self.entries:
            entry.aside.close(timeout_s)

    def of_client(
        self, instance: ClientMetricsInstance, context: RequestContext
    ) -> Labels | Deferred[Labels]:
        """The labels of a client of this host for its push; see `labels`."""
        connection_id = context.connection.connection_id
        known = instance.labels_on(connection_id)
        if known is None:
            if not self.entries and self.cluster.text is None:
                return None
            known = ClientLabels()
            instance.remember_labels(connection_id, known)
        return self.labels(known, instance.client_instance_id, context)

    def of_records(self, records: Sequence[TelemetryRecord], done: Callable[[list[Labels]], None]) -> None:
        """Find the labels of records that no host has labeled, for clients of some cluster.

        Args:
            records: Those that have their labels get None.
            done: Called with the labels of each, here or later.
        """
        found: list[Any] = [None if each.labeled else self.of_record(each) for each in records]
        waiting = [(index, each) for index, each in enumerate(found) if isinstance(each, Deferred)]
        left = len(waiting)

        def note(index: int, labels: Labels) -> None:
            nonlocal left
            found[index] = labels
            left -= 1
            if not left:
                done(found)

        for index, each in waiting:
            each.when_done(partial(note, index))
        if not waiting:
            done(found)

    def of_record(self, record: TelemetryRecord) -> Labels | Deferred[Labels]:
        """The labels of a record that no host has labeled."""
        key = record.payload.client_instance_id, record.context.connection.connection_id
        known = self.elsewhere.setdefault(key, ClientLabels(is_own=False))
        self.elsewhere.move_to_end(key)
        if len(self.elsewhere) > MAX_ELSEWHERE:
            self.elsewhere.popitem(last=False)
        return self.labels(known, key[0], record.context)

    def labels(
        self, known: ClientLabels, client_instance_id: bytes, context: RequestContext
    ) -> Labels | Deferred[Labels]:
        """The labels of a client, or None. Asks the enrichers that have not been asked, or that are due.

        The labels of an enricher that raises or returns nonsense are left out, and it is asked again later.

        Args:
            known: What is known of the labels of this client on this connection.
            client_instance_id: The client instance.
            context: Its request. Of clients of other clusters it may tell the cluster.
        """
        now_ms = self.clock.monotonic_ms()
        if known.changes != self.changes.last:
            if self.changes.concern(context.connection.principal, known.changes):
                self.renew(known)
            known.changes = self.changes.last
        if known.due_ms <= now_ms:
            self.ask(known, client_instance_id, context, now_ms)
        if not known.awaited or now_ms >= known.wait_until_ms:
            return known.taken()
        if known.wait is None:
            known.wait = self.timer.schedule(known.wait_until_ms, known.release)
        deferred = Deferred[Labels]()
        known.waiting += (deferred,)
        return deferred

    def renew(self, known: ClientLabels) -> None:
        """Have the enrichers asked again; what they have said is good until they answer."""
        for answer in known.answers:
            if answer.later is not None:
                self.forget(known, answer)
            answer.due_ms = PAST_MS
        known.due_ms = PAST_MS

    def ask(
        self, known: ClientLabels, client_instance_id: bytes, context: RequestContext, now_ms: int
    ) -> None:
        """Ask the enrichers that are due."""
        known.answers = known.answers or [Answer(entry) for entry in self.entries]
        known.cluster = context.connection.cluster_id or (self.cluster.text if known.is_own else None)
        for answer in known.answers:
            if answer.due_ms <= now_ms:
                entry = answer.entry
                question = partial(entry.enricher.labels, client_instance_id, context)
                offered = self.offered(entry, question, now_ms)
                if isinstance(offered, Later):
                    self.wait_for(known, answer, offered, now_ms)
                else:
                    self.take(answer, offered, now_ms)
        self.compose(known)

    def offered(self, entry: Entry, question: Callable[[], object], now_ms: int) -> object:
        """What an enricher returns or raises. One that does not block is called here."""
        if entry.awaited >= MAX_AWAITED:
            return RuntimeError(f"{entry.awaited} answers are awaited")
        if entry.blocks:
            return outcome_of(entry.aside.call, question)
        started_ns = self.clock.monotonic_ns()
        try:
            return question()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin hurts itself alone
            return error
        finally:
            took_ns = self.clock.monotonic_ns() - started_ns
            if took_ns > self.slow_ms * 1_000_000:
                entry.stats.block("labels", took_ns, now_ms, entry.enricher.labels)

    def take(self, answer: Answer, offered: object, now_ms: int) -> None:
        """Take an answer, or the error that stands for it."""
        entry = answer.entry
        labels = offered if isinstance(offered, BaseException) else outcome_of(checked, offered)
        if isinstance(labels, BaseException):
            entry.stats.fail(labels, now_ms, entry.enricher.labels)
            answer.due_ms = now_ms + RETRY_MS
        else:
            entry.stats.exported += 1
            answer.labels = labels
            answer.due_ms = FOREVER_MS if entry.ttl_ms is None else now_ms + entry.ttl_ms

    def wait_for(self, known: ClientLabels, answer: Answer, later: Later, now_ms: int) -> None:
        """Wait for an answer, for a while."""
        entry = answer.entry
        entry.is_late = True
        answer.later, answer.due_ms = later, FOREVER_MS
        known.wait_until_ms = now_ms + self.wait_ms
        known.awaited += 1
        entry.awaited += 1
        answered = partial(self.answered, known, answer, later)
        late = TimeoutError(f"no answer in {ANSWER_MS // 1_000} s")
        answer.give_up = self.timer.schedule(now_ms + ANSWER_MS, partial(answered, late))
        later.when_done(lambda outcome: entry.aside.on_loop(partial(answered, outcome)))
        if later.awaitable is not None:
            entry.aside.run(later)

    def answered(self, known: ClientLabels, answer: Answer, later: Later, outcome: object) -> None:
        """An answer has come, or will not."""
        if answer.later is later:
            self.forget(known, answer)
            self.take(answer, outcome, self.clock.monotonic_ms())
            self.compose(known)
            if not known.awaited:
                known.release()

    def forget(self, known: ClientLabels, answer: Answer) -> None:
        """Do not wait for an answer any more."""
        assert answer.later is not None
        assert answer.give_up is not None
        answer.entry.aside.cancel(answer.later)
        answer.give_up.cancel()
        answer.later = answer.give_up = None
        known.awaited -= 1
        answer.entry.awaited -= 1

    def compose(self, known: ClientLabels) -> None:
        """Put the labels together that are known."""
        answers = known.answers
        labels = {} if known.cluster is None else {CLUSTER_NAME: known.cluster}
        for answer in answers:
            labels |= answer.labels or {}
        known.missing = [answer.entry.stats for answer in answers if answer.labels is None]
        if known.missing:
            labels[LABELS_MISSING] = ",".join(stats.name for stats in known.missing)
        known.encoded = self.shared(encode_labels(labels)) if labels else None
        known.due_ms = min((answer.due_ms for answer in answers), default=FOREVER_MS)
        if known.due_ms == FOREVER_MS and not any(answer.entry.is_late for answer in answers):
            known.answers = ()

    def shared(self, labels: EncodedLabels) -> EncodedLabels:
        """The labels, with a set of names that is shared by other clients."""
        if len(self.key_sets) >= MAX_KEY_SETS:
            self.key_sets.clear()
        labels.keys = self.key_sets.setdefault(labels.keys, labels.keys)
        return labels


def is_blocking(enricher: Enricher) -> bool:
    """Whether an enricher says that it blocks."""
    return bool(getattr(enricher, "blocks", False))


def try_enricher(name: str, enricher: Enricher) -> None:
    """Ask an enricher for the labels of a sample client, so that nonsense is found before the first push. One
    that blocks is not asked.

    Raises:
        ConfigError: The labels are not text.
    """
    if is_blocking(enricher):
        return
    try:
        offered = enricher.labels(SAMPLE_INSTANCE_ID, SAMPLE)
    except Exception as error:  # noqa: BLE001 - it may know the clients that will come
        problem = described(error) + place_of(error)
        extra = {"plugin": name, "problem": problem}
        log.warning("plugin %s cannot label a sample client: %s", name, problem, extra=extra)
        return
    if isinstance(offered, Later):
        if isinstance(offered.awaitable, Coroutine):
            offered.awaitable.close()
        return
    try:
        checked(offered)
    except (TypeError, ValueError) as error:
        where = place_of_definition(enricher.labels)
        raise ConfigError(f"plugins.{name}", f"{error}{where}") from error


def checked(offered: object) -> dict[str, str]:
    """The labels that an enricher returned.

    Raises:
        TypeError: They are no mapping of strings to strings.
        UnicodeEncodeError: A string cannot be written as UTF-8.
    """
    if not isinstance(offered, Mapping):
        raise TypeError(f"labels returned {type(offered).__name__}, expected a mapping of strings")
    for key, value in offered.items():
        for text, role in ((key, "as a name"), (value, f"for {key!r}")):
            if not isinstance(text, str):
                raise TypeError(f"labels returned {type(text).__name__} {role}, expected a string")
            text.encode()
    return dict(offered)

"""The series of each client under other subscriptions: counted, computed or guessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final, NamedTuple

from odradek.estimate.pushed_streams import Stream, StreamReader
from odradek.estimate.recorded_clients import RecordedClient, RecordedClients
from odradek.estimate.series_model import (
    BROKER,
    CALL,
    CLIENT,
    FETCH_CALL,
    NODE,
    OBSERVED_CLIENT,
    PARTITION,
    PRODUCE_CALL,
    ROLES,
    TOPIC,
    USUAL,
    Breadth,
    covers,
    library_of,
    metrics_by_level,
    modelled_series,
    role_of,
    role_of_client_id,
)
from odradek.findings.app_name import app_name
from odradek.findings.presets import selects
from odradek.findings.troubles import JAVA
from odradek.telemetry.client_metrics_configs import ALL_METRICS
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata
from odradek.telemetry.narrowed_clients import narrower_plans
from odradek.telemetry.subscription_id import subscription_id
from odradek.telemetry.subscriptions import SubscriptionPlan

USUAL_BYTES: Final = 130
"""Bytes of a series in a push, if no client of the same software has pushed: 90 to 260 in recordings."""
PRODUCE: Final = "Produce"
FETCHES: Final = ("Fetch", "ShareFetch")
UNKNOWN: Final = "(unknown)"
NOT_BROKERS: Final = {"producer": 1, "consumer": 2}
"""Nodes of a Java client beside brokers: the bootstrap address, and the coordinator of the group."""


class Basis(StrEnum):
    """How the series of a client were found."""

    SEEN = "seen"
    MODELLED = "modelled"
    GUESSED = "guessed"


class LiveClient(NamedTuple):
    """A client that may push."""

    metadata: ClientMetricsInstanceMetadata
    recorded: RecordedClient | None
    """Its pushes; None if there are none."""

    @property
    def principal(self) -> str:
        return UNKNOWN if self.recorded is None else self.recorded.principal

    @property
    def app(self) -> str:
        group_id = "" if self.recorded is None else self.recorded.group_id
        return app_name(self.metadata.client_id or "", group_id)


def live_clients(
    recorded: RecordedClients, known: Iterable[ClientMetricsInstanceMetadata], now_ms: int
) -> Iterator[LiveClient]:
    """The live clients of the records, and those that the host remembers beside them."""
    for client in recorded.live(now_ms):
        yield LiveClient(client.metadata, client)
    for metadata in known:
        earlier = recorded.by_id.get(metadata.client_instance_id)
        if earlier is None or not (earlier.is_terminated or earlier.is_live(now_ms)):
            yield LiveClient(metadata, earlier)


class Future(NamedTuple):
    """The series of a client under other subscriptions."""

    role: str | None
    series: int | None
    """None if they must be guessed."""
    basis: Basis


@dataclass(slots=True)
class Outlook:
    """One client, and its future."""

    client: LiveClient
    before: SubscriptionPlan
    after: SubscriptionPlan
    future: Future

    @property
    def now(self) -> int:
        """Its series now."""
        recorded = self.client.recorded
        return 0 if recorded is None else len(recorded.streams)

    @property
    def software(self) -> str:
        name = self.client.metadata.client_software_name or ""
        recorded = self.client.recorded
        return f"{OBSERVED_CLIENT} {name}" if recorded is not None and recorded.observed else name

    def likenesses(self) -> Iterator[tuple[object, ...]]:
        """Keys that it shares with other clients, the most similar ones first."""
        wanted, role = self.after.metrics, self.future.role
        version = self.client.metadata.client_software_version
        if role is not None:
            yield wanted, self.software, version, role
            yield wanted, self.software, role
        else:
            yield wanted, self.software, version
            yield wanted, self.software


class Futures:
    """Foresees the series of clients. Clients with equal streams have the same future, found once."""

    def __init__(self, reader: StreamReader) -> None:
        self.reader = reader
        self.ladders: dict[SubscriptionPlan, list[SubscriptionPlan]] = {}
        """A plan and the narrower ones, by plan."""
        self.found: dict[tuple[object, ...], Future] = {}

    def future(self, client: LiveClient, before: SubscriptionPlan, after: SubscriptionPlan) -> Future:
        """The future series of one client."""
        metadata, recorded = client.metadata, client.recorded
        if recorded is None:
            role = role_of_client_id(metadata.client_id)
            return Future(role, None, Basis.GUESSED) if after.metrics else Future(role, 0, Basis.SEEN)
        library = recorded.library
        asked = self.asked(recorded, before)
        key = recorded.streams, library, asked, after
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = self.foresee(recorded.streams, library, asked, after.metrics)
        return found if found.role else found._replace(role=role_of_client_id(metadata.client_id))

    def asked(self, recorded: RecordedClient, plan: SubscriptionPlan) -> tuple[str, ...]:
        """The prefixes that the client was asked for when it pushed; empty if they are not known.

        The id of the subscription in its records tells: it is that of the plan, or of a narrower one if its
        pushes were too large.
        """
        ladder = self.ladders.get(plan)
        if ladder is None:
            ladder = self.ladders[plan] = [plan, *(narrower for _, narrower in narrower_plans(plan))]
        client_instance_id = recorded.metadata.client_instance_id
        for each in ladder:
            if subscription_id(each.checksum, client_instance_id) == recorded.subscription_id:
                return each.metrics
        return ()

    def foresee(
        self, streams: frozenset[Stream], library: str, asked: tuple[str, ...], wanted: tuple[str, ...]
    ) -> Future:
        """The future of clients with these streams."""
        role = role_of(name for name, _ in streams)
        if role is None and library == OBSERVED_CLIENT:
            apis = {labels.api for _, at in streams if (labels := self.reader.labels.get(at))}
            role = ROLES[0] if PRODUCE in apis else ROLES[1]
        if not wanted:
            return Future(role, 0, Basis.SEEN)
        seen = sum(selects(wanted, name) for name, _ in streams)
        if asked and covers(asked, wanted):
            return Future(role, seen, Basis.SEEN)
        if role is not None and metrics_by_level(library, role, (ALL_METRICS,), ()):
            more = metrics_by_level(library, role, wanted, asked)
            series = modelled_series(more, breadth(library, role, asked, streams, self.reader))
            if series is not None:
                return Future(role, max(seen + series if asked else series, seen), Basis.MODELLED)
        return Future(role, None, Basis.GUESSED)


def breadth(
    library: str, role: str, known: tuple[str, ...], streams: frozenset[Stream], reader: StreamReader
) -> Breadth:
    """The nodes, topics and partitions that a client's streams show.

    A label that no stream has is 0 if the client was asked for metrics with it, and else not known.
    """
    labels = {reader.labels[attributes] for _, attributes in streams if attributes in reader.labels}
    asked = metrics_by_level(library, role, known, ()) if known else {}
    nodes = len({each.node for each in labels if each.node is not None})
    brokers = len({each.broker for each in labels if each.broker is not None})
    if brokers and BROKER in asked and NODE not in asked:
        nodes = brokers + NOT_BROKERS[role]
    topics = len({each.topic for each in labels if each.topic is not None})
    partitions = len({(each.topic, each.partition) for each in labels if each.partition is not None})
    calls = [each.api for each in {(each.api, each.node): each for each in labels if each.api}.values()]
    return {
        CLIENT: 1,
        NODE: nodes if nodes or NODE in asked else None,
        BROKER: brokers if brokers or nodes or BROKER in asked else None,
        TOPIC: topics if topics or TOPIC in asked else None,
        PARTITION: partitions if partitions or PARTITION in asked else None,
        CALL: len(calls) if CALL in asked else None,
        PRODUCE_CALL: calls.count(PRODUCE) if CALL in asked or PRODUCE_CALL in asked else None,
        FETCH_CALL: sum(map(calls.count, FETCHES)) if CALL in asked or FETCH_CALL in asked else None,
    }


class Peers:
    """The clients whose series are known: the others are assumed to be like them."""

    def __init__(self) -> None:
        self.series: dict[tuple[object, ...], list[int]] = {}
        self.sizes: dict[str, list[float]] = {}
        self.medians: dict[object, float] = {}

    def add(self, client: Outlook) -> None:
        """Add a client, if it tells something."""
        series, recorded = client.future.series, client.client.recorded
        if series is not None and client.after.metrics:
            for key in client.likenesses():
                self.series.setdefault(key, []).append(series)
        if recorded is not None and recorded.pushed_streams:
            self.sizes.setdefault(client.software, []).append(recorded.push_bytes / recorded.pushed_streams)

    def median(self, key: object, values: Sequence[float]) -> float:
        """The median of some values, computed once."""
        if key not in self.medians:
            self.medians[key] = median(values)
        return self.medians[key]

    def guess(self, client: Outlook) -> int:
        """The median of clients like this one; without any, a client of a usual size."""
        for key in client.likenesses():
            if key in self.series:
                return round(self.median(key, self.series[key]))
        metadata, recorded = client.client.metadata, client.client.recorded
        library = library_of(metadata.client_software_name, metadata.client_software_version)
        library = library if recorded is None else recorded.library
        role, wanted = client.future.role or ROLES[0], client.after.metrics
        theirs = metrics_by_level(library, role, wanted, ())
        return modelled_series(theirs or metrics_by_level(JAVA, role, wanted, ()), USUAL) or 0

    def series_bytes(self, client: Outlook) -> float:
        """The size of one series in a push of the client."""
        recorded = client.client.recorded
        if recorded is not None and recorded.pushed_streams:
            return recorded.push_bytes / recorded.pushed_streams
        sizes = self.sizes.get(client.software)
        return self.median(client.software, sizes) if sizes else USUAL_BYTES

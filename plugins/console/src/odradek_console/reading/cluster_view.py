"""Answers of a cluster to admin requests: subscriptions, quotas, and the lag of forwarders."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import re2

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.errors import ClientError, RequestFailed, UnsupportedVersion
from odradek.client.lease import lease_end_s
from odradek.client.resources import LATEST, MAX_TIMESTAMP, ConfigResource, Offset
from odradek_console.cluster_rows import (
    BrokerRow,
    ConfigRow,
    DeadLetterRow,
    DeliveryRow,
    QuotaRow,
    SubscriptionRow,
    TopicListing,
)
from odradek_console.engine.client_entry import Places
from odradek_console.reading.pushes import Pushes, read_pushes
from odradek_console.reading.replay import dead_letters
from odradek_console.rows import ClientRow

Value = TypeVar("Value")
FORWARDERS: Final = ("odradek.forwarder.", "odradek.forward.")
"""Prefixes of the groups of forwarders: those of hosts, and those of `odradek forward`."""
KEPT_S: Final = 5.0
OURS: Final = "__"
"""Prefix of topics that brokers, hosts and tools write for themselves."""
TOPICS_KEPT_S: Final = 60.0
MOST_PARTITIONS: Final = 10_000
"""Whose last record is asked for."""
SELECTORS: Final = {
    "client_id": "client_id",
    "client_instance_id": "client_instance_id",
    "client_software_name": "software",
    "client_software_version": "version",
    "client_source_address": "address",
}
"""Selectors of ``match`` that a row has, and its field. Not its port: that changes."""
PATTERN_BYTES: Final = 1 << 20
"""Memory of a pattern. A larger one takes a second for a thousand clients."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The last answer of a cluster, or the error instead of it."""

    asked_s: float
    value: Any = None
    failure: ClientError | None = None

    def read(self) -> Any:
        """The answer.

        Raises:
            ClientError: The failure.
        """
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        return self.value


NEVER: Final = Answer(float("-inf"))


class ClusterView:
    """Answers of a cluster, kept for some seconds. Any thread may call its methods.

    A failure is kept too: those who wait while one asks a cluster that is away do not wait again.

    Every method raises `odradek.client.errors.ClientError` if the cluster refuses or does not answer.

    Args:
        connect: Makes a client of the cluster.
        topic: The telemetry topic.
        kept_s: How long an answer is kept.
        now_s: A monotonic clock.
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        topic: str,
        kept_s: float = KEPT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connect = connect
        self.topic = topic
        self.kept_s = kept_s
        self.now_s = now_s
        self.lock = threading.Lock()
        self.reading = threading.Lock()
        self.answers: dict[str, Answer] = {}
        self.away = NEVER
        """The last attempt that did not reach the cluster."""

    def forget(self) -> None:
        """Ask again the next time: something was changed."""
        with self.lock:
            self.answers.clear()
            self.away = NEVER

    def kept(self, name: str, ask: Callable[[AdminClient], Value], kept_s: float | None = None) -> Value:
        """An answer that is new enough, or a new one."""
        with self.lock:
            found = self.answers.get(name, NEVER)
            if not self.is_new(found, None if found.failure else kept_s):
                found = self.answers[name] = self.asked(ask)
            value: Value = found.read()
            return value

    def is_new(self, answer: Answer, kept_s: float | None = None) -> bool:
        """Whether an answer is still good."""
        return self.now_s() - answer.asked_s <= (self.kept_s if kept_s is None else kept_s)

    def asked(self, ask: Callable[[AdminClient], Any]) -> Answer:
        """A new answer, or the failure of a moment ago if the cluster was away."""
        if self.is_new(self.away):
            return self.away
        try:
            with self.connect() as admin:
                return Answer(self.now_s(), value=ask(admin))
        except ClientError as error:
            found = Answer(self.now_s(), failure=error)
            if not isinstance(error, RequestFailed):
                self.away = found
            return found

    def subscriptions(self) -> list[SubscriptionRow]:
        """The subscriptions, by name."""
        return self.kept("subscriptions", subscription_rows)

    def quotas(self) -> list[QuotaRow]:
        """The client quotas."""
        return self.kept("quotas", quota_rows)

    def pushes(self, places: Places, key: str) -> Pushes:
        """The pushes of a client instance at some places of the topic, read now. One caller reads at a time.

        Args:
            places: The positions.
            key: The client instance.
        """
        with self.reading:
            found: Pushes = self.asked(lambda admin: read_pushes(admin, self.topic, places, key)).read()
            return found

    def delivery(self) -> list[DeliveryRow]:
        """The forwarders that read the topic, by name, with their lag."""
        return self.kept("delivery", lambda admin: delivery_rows(admin, self.topic))

    def dead_letters(self) -> list[DeadLetterRow]:
        """The latest pushes that forwarders gave up, the newest first."""
        return self.kept("dead letters", lambda admin: dead_letters(admin, self.topic))

    def topics(self) -> list[TopicListing]:
        """The topics that are not internal, by name, with the times of their last records."""
        return self.kept("topics", topic_listings, TOPICS_KEPT_S)

    def brokers(self) -> list[BrokerRow]:
        """The brokers, by id."""
        return self.kept("brokers", broker_rows)

    def configs(self) -> list[ConfigRow]:
        """The settings of telemetry at the brokers, and of the telemetry topic."""
        return self.kept("configs", lambda admin: config_rows(admin, self.topic))


def subscription_rows(admin: AdminClient) -> list[SubscriptionRow]:
    """The subscriptions of a cluster."""
    return [
        SubscriptionRow(
            name=name,
            metrics=properties.get("metrics", ""),
            interval_ms=int(properties["interval.ms"]) if "interval.ms" in properties else None,
            match=properties.get("match", ""),
            lease_end_s=lease_end_s(name),
        )
        for name, properties in sorted(read_subscriptions(admin).items())
    ]


def quota_rows(admin: AdminClient) -> list[QuotaRow]:
    """The client quotas of a cluster."""
    found = [
        QuotaRow(entity=tuple(sorted(entity.names().items())), limits=tuple(sorted(values.items())))
        for entity, values in admin.describe_client_quotas({}).items()
    ]
    return sorted(found, key=lambda each: [(kind, name or "") for kind, name in each.entity])


def delivery_rows(admin: AdminClient, topic: str) -> list[DeliveryRow]:
    """The lag of each forwarder of a topic."""
    groups = [each.group_id for each in admin.list_groups() if each.group_id.startswith(FORWARDERS)]
    if not groups:
        return []
    (described,) = admin.describe_topics([topic])
    partitions = [(topic, each.index) for each in described.partitions]
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    rows = []
    for group in sorted(groups):
        committed = admin.offset_fetch(group, partitions)
        lag = sum(max(0, ends[each].offset - found.offset) for each, found in committed.items())
        name = group.split(".", 2)[2]
        rows.append(DeliveryRow(name=name, group_id=group, partitions=len(committed), lag_records=lag))
    return rows


def topic_listings(admin: AdminClient) -> list[TopicListing]:
    """The topics of a cluster. The newest times are asked for as many partitions as the bound allows."""
    found = {
        each.name: [partition.partition_index for partition in each.partitions]
        for each in sorted(admin.metadata().topics, key=lambda each: each.name or "")
        if each.name and not each.is_internal and not each.name.startswith(OURS)
    }
    places = [(name, index) for name, indexes in found.items() for index in indexes][:MOST_PARTITIONS]
    newest = dict[str, int]()
    try:
        answers = admin.list_offsets_of_each(dict.fromkeys(places, MAX_TIMESTAMP))
    except UnsupportedVersion:  # brokers before 3.0
        answers = {}
    for (name, _), answer in answers.items():
        if isinstance(answer, Offset) and answer.timestamp_ms >= 0:
            newest[name] = max(answer.timestamp_ms, newest.get(name, 0))
    return [
        TopicListing(name=name, partitions=len(indexes), last_ms=newest.get(name))
        for name, indexes in found.items()
    ]


def broker_rows(admin: AdminClient) -> list[BrokerRow]:
    """The brokers of a cluster."""
    found = admin.describe_cluster()
    return [
        BrokerRow(
            node_id=each.id,
            host=each.address.host,
            port=each.address.port,
            is_controller=each.id == found.controller_id,
        )
        for each in sorted(found.nodes, key=lambda each: each.id)
    ]


def config_rows(admin: AdminClient, topic: str) -> list[ConfigRow]:
    """The settings of telemetry at each broker, and those of the topic that differ from the defaults."""
    brokers = [ConfigResource.broker(each.id) for each in admin.describe_cluster().nodes]
    of_topic = ConfigResource.topic(topic)
    return [
        ConfigRow(
            resource=f"topic {topic}" if resource is of_topic else f"broker {resource.name}",
            name=entry.name,
            value=entry.value,
            source=entry.source_name,
        )
        for resource, entries in admin.describe_configs([*brokers, of_topic]).items()
        for entry in sorted(entries, key=lambda each: each.name)
        if (not entry.is_default if resource is of_topic else "telemetry" in entry.name)
    ]


def is_matched(match: str, row: ClientRow) -> bool:
    """Whether the ``match`` of a subscription selects a client; see `matcher`."""
    return matcher(match)(row)


def matcher(match: str) -> Callable[[ClientRow], bool]:
    """A test of rows. A port, which changes, is not compared; a pattern that is invalid or too large selects
    nothing.
    """
    options, tests = re2.Options(), []
    options.max_mem, options.log_errors = PATTERN_BYTES, False  # otherwise each client has a line on stderr
    for selector, pattern in selectors(match).items():
        if selector in SELECTORS:
            try:
                tests.append((SELECTORS[selector], re2.compile(pattern, options)))
            except re2.error:
                return lambda row: False
    return lambda row: all(pattern.fullmatch(getattr(row, field)) is not None for field, pattern in tests)


def selectors(match: str) -> Mapping[str, str]:
    """The patterns of a ``match`` by selector."""
    pairs = (each.partition("=") for each in match.split(",") if each.strip())
    return {key.strip(): pattern.strip() for key, _, pattern in pairs}

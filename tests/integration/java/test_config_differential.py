"""The host and Apache Kafka are asked to validate the same alterations of every key of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from contrib.capture.kafka_node import kafka_node

from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from support.config_questions import Question, described, questions
from support.hosts import serving
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

NODE, CLUSTER, TOPIC = "1", "", "altered"
INTERNAL = {
    "internal.metadata.delete.delay.millis",
    "internal.metadata.log.segment.bytes",
    "internal.metadata.max.batch.size.in.bytes",
}
KEYS_OF_BROKERS = (
    "no.such.key",
    "",
    " x y",
    "listener.name.plaintext.no.such.key",
    "listener.name.plaintext.num.io.threads",
    "listener.name.plaintext.max.connections",
    "listener.name.other.sasl.jaas.config",
    "listener.name.other.ssl.keystore.location",
    "listener.name.plaintext.num.partitions",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    *INTERNAL,
    "internal.of.nobody",
)
"""Keys that Kafka does not describe."""
READ_AT_START = {
    "listeners",
    "listener.security.protocol.map",
    "listener.name.plaintext.num.partitions",
    "sasl.enabled.mechanisms",
    "ssl.cipher.suites",
    "ssl.client.auth",
    "ssl.enabled.protocols",
}
NOT_TAKEN = {"cordoned.log.dirs", "metric.reporters", "principal.builder.class", "ssl.engine.factory.class"}
BOUNDS = {"log.flush.interval.ms", "log.retention.bytes", "log.retention.ms"}
"""Negative values other than -1, and 0 ms: the host has the bounds of the topics' keys."""
FAULTS_OF_KAFKA = {"controller.listener.names", "process.roles"}
"""To append to a list without a default is UNKNOWN_SERVER_ERROR."""
OTHER_ANSWERS = {
    ResourceType.BROKER: READ_AT_START
    | NOT_TAKEN
    | BOUNDS
    | FAULTS_OF_KAFKA
    | {"log.dir", "min.insync.replicas"},
    ResourceType.TOPIC: {"retention.bytes"},
    ResourceType.GROUP: set(),
    ResourceType.CLIENT_METRICS: set(),
}
"""Keys with another error code for one alteration at least: protocol-coverage.md has the reasons."""
OTHER_TEXTS = INTERNAL | {
    "broker.id",
    "listener.name.plaintext.num.io.threads",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.threads",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "max.connections.per.ip.overrides",
    "share.auto.offset.reset",
}
"""The same error in other words."""
MISSING: dict[int, tuple[str, ...]] = {
    ResourceType.TOPIC: ("local.retention.", "remote."),
    ResourceType.GROUP: (
        "streams.acceptable.",
        "streams.assignor.",
        "streams.num.warmup.",
        "streams.rack.",
        "streams.task.",
    ),
}
"""Kafka's keys that the host refuses as unknown: it has no tiered storage, one assignor of streams groups and
no warm-up."""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WireClient, WireClient]]:
    """Kafka and the host, each with the topic."""
    with kafka_node() as node, serving(tmp_path_factory.mktemp("host")) as process:
        ports = (node.port, int(process.bootstrap.rpartition(":")[2]))
        theirs, ours = (WireClient(("127.0.0.1", port), "configs", timeout_s=30) for port in ports)
        with theirs, ours:
            wanted = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            for client in (theirs, ours):
                client.send(CreateTopicsRequest(topics=[wanted]), 7)
                wait_until(partial(described, client, ResourceType.TOPIC, TOPIC), "the topic")
            yield theirs, ours


def asked(kind: int, sides: tuple[WireClient, WireClient]) -> Iterator[Question]:
    """Every alteration of every key of a type, except those that the host does not have."""
    theirs, _ = sides
    if kind == ResourceType.BROKER:
        yield from questions(kind, (NODE, CLUSTER), described(theirs, kind, NODE), KEYS_OF_BROKERS)
        return
    names = (TOPIC, "missing", "")
    keys = [
        key for key in described(theirs, kind, TOPIC) if not key.name.startswith(MISSING.get(kind, ("-",)))
    ]
    yield from questions(kind, names, keys, ("no.such.key", ""))


@pytest.mark.parametrize("kind", list(OTHER_ANSWERS))
def test_an_alteration_is_taken_or_refused_as_by_kafka(
    kind: ResourceType, sides: tuple[WireClient, WireClient]
) -> None:
    theirs, ours = sides
    codes: dict[str, object] = {}
    texts: dict[str, object] = {}

    for number, question in enumerate(asked(kind, sides)):  # noqa: B007  the number is asserted
        expected, found = question.asked(theirs), question.asked(ours)
        if expected[0] != found[0]:
            codes.setdefault(question.key, (question, expected, found))
        elif expected[1] != found[1]:
            texts.setdefault(question.key, (question, expected, found))

    assert number > 50
    listed = OTHER_ANSWERS[kind]
    assert {key: seen for key, seen in codes.items() if key not in listed} == {}
    assert listed - codes.keys() == set()
    assert {key: seen for key, seen in texts.items() if key not in listed | OTHER_TEXTS} == {}


@pytest.mark.parametrize("kind", list(MISSING))
def test_a_key_of_what_the_host_does_not_have_is_unknown(
    kind: ResourceType, sides: tuple[WireClient, WireClient]
) -> None:
    theirs, ours = sides
    keys = [key for key in described(theirs, kind, TOPIC) if key.name.startswith(MISSING[kind])]

    found = [question.asked(ours) for question in questions(kind, (TOPIC,), keys) if question.value]

    assert len(found) > 5
    assert all(code and "Unknown" in (text or "") for code, text in found)


@pytest.mark.parametrize(
    "changes",
    [
        {"no.such.key": "5", "remote.fetch.max.wait.ms": " 9 ", "ssl.provider": "x"},
        {"producer.id.expiration.ms": "70000", "log.cleaner.backoff.ms": "100"},
        {"sasl.jaas.config": "secret", "listener.name.plaintext.remote.fetch.max.wait.ms": "7"},
    ],
)
def test_keys_that_are_set_are_described_as_by_kafka(
    changes: dict[str, str], sides: tuple[WireClient, WireClient]
) -> None:
    rows = []
    for client in sides:
        for key, value in changes.items():
            change = Question(ResourceType.BROKER, NODE, key, 0, value)
            assert change.asked(client, validate_only=False) == (0, None)
            # Kafka validates a change against what it has applied: a key of a listener is the last.
            wait_until(partial(shows, client, key), "the change")
        found = {key.name: key for key in described(client, ResourceType.BROKER, NODE)}
        rows.append(
            {
                name: (
                    row.value,
                    row.read_only,
                    row.config_source,
                    row.is_sensitive,
                    row.config_type,
                    [(each.name, each.value, each.source) for each in row.synonyms],
                )
                for name, row in found.items()
                if name in changes
            }
        )
        for key in changes:
            Question(ResourceType.BROKER, NODE, key, 1, None).asked(client, validate_only=False)

    assert rows[0] == rows[1]


def shows(client: WireClient, key: str) -> bool:
    found = {row.name: row.config_source for row in described(client, ResourceType.BROKER, NODE)}
    return found.get(key) == 2

"""Scenarios of the configuration of topics and brokers."""

from __future__ import annotations

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.kafka_requests import APPEND, DELETE, SET, SUBTRACT, Resource, alter, describe, replace
from contrib.capture.topic_scenarios import DYNAMIC_IDS, create, delete_all, new

TOPIC, BROKER = 2, 4
NODE, CLUSTER = "1", ""


def show(say: Recorder, kind: int, name: str, *keys: str) -> None:
    """Describe with synonyms and types."""
    say.ask(f"describe {name!r}", describe(4, Resource(name, kind=kind, keys=keys or None), synonyms=True))


def change(say: Recorder, kind: int, name: str, key: str, value: str | None, operation: int = SET) -> None:
    what = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}[operation]
    say.ask(
        f"{what} {key}={value} on {name!r}", alter(1, Resource(name, ((key, operation, value),), kind=kind))
    )


def topic_defaults(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("t"))
    show(say, TOPIC, "t")
    for name in ("nope", "a b", ""):
        show(say, TOPIC, name)
    delete_all(say, "t")


def broker_defaults(say: Recorder) -> None:
    say.note("dynamic: ports and folders")
    show(say, BROKER, NODE)
    show(say, BROKER, CLUSTER)
    for name in ("2", "x"):
        show(say, BROKER, name)


def topic_altered(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("t"))
    change(say, TOPIC, "t", "retention.ms", "7")
    show(say, TOPIC, "t", "retention.ms")
    for name, key, value in (
        ("t", "nope", "7"),
        ("nope", "retention.ms", "7"),
        ("t", "segment.bytes", "7"),
        ("t", "retention.ms", "x"),
        ("", "retention.ms", "7"),
        ("a b", "retention.ms", "7"),
    ):
        change(say, TOPIC, name, key, value)
    change(say, TOPIC, "t", "cleanup.policy", "compact", APPEND)
    show(say, TOPIC, "t", "cleanup.policy")
    change(say, TOPIC, "t", "cleanup.policy", "compact", SUBTRACT)
    show(say, TOPIC, "t", "cleanup.policy")
    change(say, TOPIC, "t", "retention.ms", "8", APPEND)
    change(say, TOPIC, "t", "retention.ms", None, DELETE)
    change(say, TOPIC, "t", "retention.bytes", None, DELETE)
    show(say, TOPIC, "t", "retention.ms")
    lags = (("min.compaction.lag.ms", SET, "50"), ("max.compaction.lag.ms", SET, "5"))
    say.ask("lags that cross", alter(1, Resource("t", lags, kind=TOPIC)))
    delete_all(say, "t")


def broker_altered(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    create(say, "a topic", new("t"))
    for name in (NODE, CLUSTER):
        change(say, BROKER, name, "log.retention.ms", "100000")
    show(say, BROKER, NODE, "log.retention.ms")
    show(say, BROKER, CLUSTER, "log.retention.ms")
    show(say, TOPIC, "t", "retention.ms")
    change(say, TOPIC, "t", "retention.ms", "7")
    show(say, TOPIC, "t", "retention.ms")
    change(say, TOPIC, "t", "retention.ms", None, DELETE)
    change(say, BROKER, NODE, "log.retention.ms", None, DELETE)
    show(say, BROKER, NODE, "log.retention.ms")
    show(say, TOPIC, "t", "retention.ms")
    change(say, BROKER, CLUSTER, "log.retention.ms", None, DELETE)
    show(say, BROKER, NODE, "log.retention.ms")
    for key, value in (
        ("message.max.bytes", "5000"),
        ("log.segment.bytes", "2000000"),
        ("log.cleanup.policy", "compact"),
        ("compression.type", "zstd"),
        ("log.message.timestamp.type", "LogAppendTime"),
    ):
        for name in (NODE, CLUSTER):
            change(say, BROKER, name, key, value)
    change(say, BROKER, NODE, "log.cleanup.policy", "delete", APPEND)
    show(say, BROKER, NODE, "log.cleanup.policy", "message.max.bytes", "compression.type")
    show(say, TOPIC, "t", "cleanup.policy", "max.message.bytes", "compression.type", "segment.bytes")
    change(say, BROKER, NODE, "log.cleanup.policy", "compact", SUBTRACT)
    show(say, BROKER, NODE, "log.cleanup.policy")
    say.ask("AlterConfigs with no keys", replace(2, Resource(NODE, kind=BROKER)))
    show(say, BROKER, NODE, "log.cleanup.policy", "message.max.bytes")
    keys = ("message.max.bytes", "log.segment.bytes", "log.cleanup.policy", "compression.type")
    say.ask(
        "DELETE all",
        alter(
            1,
            Resource(
                CLUSTER,
                tuple((key, DELETE, None) for key in (*keys, "log.message.timestamp.type")),
                kind=BROKER,
            ),
        ),
    )
    show(say, BROKER, NODE, *keys)
    delete_all(say, "t")


def broker_refused(say: Recorder) -> None:
    for name in (NODE, CLUSTER):
        for key, value in (
            ("num.partitions", "3"),
            ("auto.create.topics.enable", "false"),
            ("node.id", "3"),
            ("fetch.max.bytes", "2048"),
            ("telemetry.max.bytes", "10"),
            ("max.incremental.fetch.session.cache.slots", "10"),
            ("log.segment.bytes", "1"),
            ("log.segment.bytes", "abc"),
            ("log.message.timestamp.type", "x"),
        ):
            change(say, BROKER, name, key, value)
    for name in ("2", "x"):
        change(say, BROKER, name, "log.retention.ms", "1")
    change(say, BROKER, NODE, "num.partitions", None, DELETE)
    change(say, BROKER, NODE, "message.max.bytes", "1", APPEND)
    change(say, BROKER, NODE, "log.retention.ms", None)
    valid = Resource(NODE, (("log.retention.ms", SET, "1"),), kind=BROKER)
    say.ask("validateOnly", alter(1, valid, validate_only=True))
    show(say, BROKER, NODE, "log.retention.ms")


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "describe_configs_v4_topic": ("TOPIC, all keys", topic_defaults),
    "describe_configs_v4_broker": ("BROKER, all keys", broker_defaults),
    "incremental_alter_configs_v1_topic": ("TOPIC", topic_altered),
    "incremental_alter_configs_v1_broker": ("BROKER, what can be set at run time", broker_altered),
    "incremental_alter_configs_v1_broker_refused": ("BROKER, what cannot", broker_refused),
}

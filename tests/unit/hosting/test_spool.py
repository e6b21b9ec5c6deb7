"""The telemetry topic: its creation, and an existing topic of that name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from odradek.broker.spool_settings import Durability, SpoolSettings
from odradek.broker.topics import TOPIC_RESOURCE
from odradek.hosting.log_feed import LogFeed
from odradek.metadata.store import MetadataStore
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.reading import read_settings
from odradek.wire.api_error import ApiError
from support.broker import make_broker, make_spool

TOPIC = "__client_telemetry"
MIB = 1 << 20


def test_both_topics_are_created_with_the_settings() -> None:
    broker = make_broker()

    make_spool(broker, SpoolSettings(partitions=3, retention_ms=3_600_000, retention_bytes=1 << 30))

    topic, letters = broker.topics.named(TOPIC), broker.topics.named(TOPIC + "_dead_letter")
    assert topic is not None
    assert letters is not None
    assert (len(topic.partitions), len(letters.partitions)) == (3, 1)
    for config in (topic.config, letters.config):
        assert (config.retention_ms, config.retention_bytes) == (3_600_000, 1 << 30)
        assert config.segment_bytes == 64 * MIB
        assert config.max_message_bytes > 16 * MIB


def test_only_fsync_flushes() -> None:
    flushes = {
        durability: make_spool(make_broker(), SpoolSettings(durability=durability)).topic.config.flushes
        for durability in (Durability.LOG, Durability.FSYNC)
    }

    assert flushes == {Durability.LOG: False, Durability.FSYNC: True}


def test_a_value_set_by_an_operator_stays_unless_the_file_sets_another() -> None:
    broker = make_broker()
    make_spool(broker, SpoolSettings(retention_ms=1_000))
    properties = dict(broker.metadata.resource(TOPIC_RESOURCE, TOPIC))
    broker.metadata.put_resource(
        TOPIC_RESOURCE, TOPIC, properties | {"retention.ms": "7", "file.delete.delay.ms": "5"}
    )

    kept = make_spool(broker, SpoolSettings()).topic.config
    overruled = make_spool(broker, SpoolSettings(retention_ms=2_000)).topic.config

    assert (kept.retention_ms, kept.file_delete_delay_ms) == (7, 5)
    assert (overruled.retention_ms, overruled.file_delete_delay_ms) == (2_000, 5)


def test_the_number_of_partitions_grows_and_never_shrinks() -> None:
    broker = make_broker()

    counts = [
        len(make_spool(broker, SpoolSettings(partitions=partitions)).topic.partitions)
        for partitions in (2, 4, 1)
    ]

    assert counts == [2, 4, 4]


def test_a_topic_that_cannot_be_created_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = make_broker(metadata=MetadataStore(":memory:"))
    broker.topics.create("--client-telemetry".replace("-", "."), 1, {})

    with pytest.raises(ConfigError, match=r"telemetry.topic.name: __client_telemetry: .*collides"):
        make_spool(broker, SpoolSettings())


def test_reading_starts_at_the_first_remaining_record() -> None:
    broker = make_broker()
    spool = make_spool(broker, SpoolSettings(partitions=2))

    nothing = spool.read({0: 0, 1: 0})
    beyond = spool.read({0: 5})

    assert nothing == beyond == []


def test_a_forwarders_group_belongs_to_the_host() -> None:
    broker = make_broker()
    moves: list[object] = []
    spool = make_spool(broker, SpoolSettings())
    positions = spool.begin("odradek.forwarder.x", moves.append)

    with pytest.raises(ApiError, match="The host itself"):
        broker.groups.check_not_owned("odradek.forwarder.x")

    assert positions == {0: 0}
    broker.groups.check_not_owned("another")
    broker.groups.commit("odradek.forwarder.x", dict(broker.groups.offsets.of_group("odradek.forwarder.x")))
    assert moves == [{0: 0}]


class StoppedReader:
    """A forwarder whose thread has ended."""

    def call(self, action: Callable[..., object], *arguments: object) -> None:
        """Do nothing."""

    def receive(self, chunks: object) -> None:
        """Do nothing."""

    def restart(self, move: object) -> None:
        """Do nothing."""


def test_a_feed_takes_over_its_group_when_it_begins() -> None:
    broker = make_broker()
    spool = make_spool(broker, SpoolSettings())

    async def made() -> LogFeed:
        return LogFeed("x", spool)

    feed = asyncio.run(made())
    broker.groups.check_not_owned("odradek.forwarder.x")

    feed.begin(StoppedReader())

    with pytest.raises(ApiError, match="The host itself"):
        broker.groups.check_not_owned("odradek.forwarder.x")


def test_committed_positions_are_restored() -> None:
    broker = make_broker()
    spool = make_spool(broker, SpoolSettings(partitions=2))
    spool.begin("odradek.forwarder.x", lambda _: None)
    spool.commit("odradek.forwarder.x", {0: 0, 1: 9})

    positions = spool.begin("odradek.forwarder.x", lambda _: None)

    assert positions == {0: 0, 1: 0}  # the log ends before 9: a power failure lost the rest


def test_keys_have_kafka_like_defaults() -> None:
    assert read_settings(SpoolSettings, PluginConfig("", {})) == SpoolSettings()

"""Configuration of a group: Kafka 4.3.1's answers to the same changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from odradek.group.group_config import GroupConfig
from odradek.group.group_properties import in_force, validate
from odradek.group.share_config import ShareGroupConfig
from odradek.group.streams_config import StreamsGroupConfig
from odradek.plugin.config import ConfigError
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

SESSION, HEARTBEAT, INTERVAL = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)
LOCK, DELIVERIES = "share.record.lock.duration.ms", "share.delivery.count.limit"
RESET = "share.auto.offset.reset"
HOST = GroupConfig()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            SESSION,
            "44999",
            f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (SESSION, "60001", f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        (
            HEARTBEAT,
            "4999",
            f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            HEARTBEAT,
            "15001",
            f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (INTERVAL, "-1", f"Invalid value -1 for configuration {INTERVAL}: Value must be at least 0"),
        (
            INTERVAL,
            "15001",
            f"{INTERVAL} must be less than or equal to group.consumer.max.assignment.interval.ms",
        ),
        (SESSION, "x", f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
        (SESSION, "0", f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        (SESSION, "", f"Invalid value  for configuration {SESSION}: Not a number of type INT"),
        (
            SESSION,
            "99999999999",
            f"Invalid value 99999999999 for configuration {SESSION}: Not a number of type INT",
        ),
        ("foo", "1", "Unknown group config name: foo"),
        (LOCK, "999", f"Invalid value 999 for configuration {LOCK}: Value must be at least 1000"),
        (LOCK, "14999", f"{LOCK} must be greater than or equal to group.share.min.record.lock.duration.ms"),
        (LOCK, "60001", f"{LOCK} must be less than or equal to group.share.max.record.lock.duration.ms"),
        (DELIVERIES, "1", f"Invalid value 1 for configuration {DELIVERIES}: Value must be at least 2"),
        (
            DELIVERIES,
            "11",
            f"{DELIVERIES} must be less than or equal to group.share.max.delivery.count.limit",
        ),
        (
            "share.partition.max.record.locks",
            "4001",
            "share.partition.max.record.locks must be less than or equal to "
            "group.share.max.partition.max.record.locks",
        ),
        (
            "share.assignment.interval.ms",
            "15001",
            "share.assignment.interval.ms must be less than or equal to "
            "group.share.max.assignment.interval.ms",
        ),
        (
            "share.isolation.level",
            "READ_COMMITTED",
            "Invalid value READ_COMMITTED for configuration share.isolation.level: String must be one of: "
            "read_committed, read_uncommitted",
        ),
        (
            "errors.deadletterqueue.topic.name",
            "__consumer_offsets",
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        (
            "streams.session.timeout.ms",
            "44999",
            "streams.session.timeout.ms must be greater than or equal to "
            "group.streams.min.session.timeout.ms",
        ),
        (
            "streams.num.standby.replicas",
            "3",
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
        (
            "streams.initial.rebalance.delay.ms",
            "-1",
            "Invalid value -1 for configuration streams.initial.rebalance.delay.ms: Value must be at least 0",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_kafkas_message(key: str, value: str, message: str) -> None:
    with pytest.raises(ApiError) as refusal:
        validate({key: value}, HOST)

    assert (refusal.value.code, refusal.value.message) == (ErrorCode.INVALID_CONFIG, message)


def test_a_session_must_be_longer_than_a_heartbeat_interval() -> None:
    host = GroupConfig(
        consumer_session_timeout_ms=20_000,
        consumer_min_session_timeout_ms=5_000,
    )

    with pytest.raises(ApiError) as refusal:
        validate({SESSION: "9000", HEARTBEAT: "9000"}, host)

    assert refusal.value.message == f"{SESSION} must be greater than {HEARTBEAT}"


@pytest.mark.parametrize(("value", "expected_ms"), [("45000", 45_000), (" 60000 ", 60_000)])
def test_a_value_within_the_limits_is_in_force(value: str, expected_ms: int) -> None:
    validate({SESSION: value}, HOST)

    config = in_force({SESSION: value}, HOST)

    assert config.consumer_session_timeout_ms == expected_ms
    assert config.consumer_heartbeat_interval_ms == HOST.consumer_heartbeat_interval_ms


def test_limits_apply_to_values_set_before_them() -> None:
    host = GroupConfig(consumer_max_session_timeout_ms=50_000)

    config = in_force({SESSION: "60000"}, host)

    assert config.consumer_session_timeout_ms == 50_000


def test_a_share_session_must_be_longer_than_a_heartbeat_interval() -> None:
    host = GroupConfig(share=ShareGroupConfig(min_session_timeout_ms=5_000))

    with pytest.raises(ApiError) as refusal:
        validate({"share.session.timeout.ms": "9000", "share.heartbeat.interval.ms": "9000"}, host)

    assert (
        refusal.value.message == "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
    )


def test_a_groups_own_values_of_share_groups_are_in_force() -> None:
    own = {LOCK: "20000", DELIVERIES: "3", "share.renew.acknowledge.enable": "false"}
    validate(own, HOST)

    config = in_force(own, HOST)

    assert config == replace(
        HOST,
        share=ShareGroupConfig(
            record_lock_duration_ms=20_000, delivery_count_limit=3, renew_acknowledge_enable=False
        ),
    )


@pytest.mark.parametrize(
    ("text", "where", "back_ms"),
    [
        ("latest", "latest", 0),
        ("earliest", "earliest", 0),
        ("by_duration:P1DT2H3M4.5S", "by_duration", 93_784_500),
        ("by_duration:PT0S", "by_duration", 0),
        ("by_duration:pt1h", "by_duration", 3_600_000),
        ("by_duration:PT1H-1M", "by_duration", 3_540_000),
    ],
)
def test_a_group_may_begin_at_a_place_or_some_time_ago(text: str, where: str, back_ms: int) -> None:
    validate({RESET: text}, HOST)

    reset = in_force({RESET: text}, HOST).share.auto_offset_reset

    assert (reset.where, reset.back_ms, reset.text) == (where, back_ms, text)


@pytest.mark.parametrize(
    "text", ["", "none", "by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1d",
             "by_duration:-PT1S", "by_duration:PT-1S", "by_duration:P1DT", "Latest"],
)  # fmt: skip
def test_another_beginning_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        validate({RESET: text}, HOST)

    assert refusal.value.code == ErrorCode.INVALID_CONFIG


def test_a_value_of_streams_groups_is_moved_to_the_nearest_limit() -> None:
    config = in_force({"streams.num.standby.replicas": "9", "streams.heartbeat.interval.ms": "7000"}, HOST)

    assert (config.streams.num_standby_replicas, config.streams.heartbeat_interval_ms) == (2, 7_000)
    assert config.consumer_heartbeat_interval_ms == HOST.consumer_heartbeat_interval_ms


def test_the_host_refuses_values_of_streams_groups_outside_their_limits() -> None:
    with pytest.raises(ConfigError, match=r"at least 5000 and at most group\.streams\.max"):
        StreamsGroupConfig(heartbeat_interval_ms=20_000).check()

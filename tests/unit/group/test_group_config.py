from __future__ import annotations

import pytest

from odradek.group.group_config import GroupConfig
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.settings.reading import read_settings


def test_the_defaults_of_the_consumer_protocol_are_kafkas() -> None:
    config = read_settings(GroupConfig, PluginConfig("", {}))

    assert (config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms) == (45_000, 5_000)
    assert config.consumer_assignors == ("uniform", "range")
    assert config.consumer_assignment_interval_ms == 1_000


def test_a_timeout_within_changed_limits_is_accepted() -> None:
    values = {"group.consumer.session.timeout.ms": 6_000, "group.consumer.min.session.timeout.ms": 6_000}

    config = read_settings(GroupConfig, PluginConfig("", values))

    assert config.consumer_session_timeout_ms == 6_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("group.consumer.session.timeout.ms", 44_999),
        ("group.consumer.session.timeout.ms", 60_001),
        ("group.consumer.heartbeat.interval.ms", 4_999),
        ("group.consumer.assignment.interval.ms", 15_001),
        ("group.consumer.max.size", 0),
        ("group.consumer.assignors", []),
        ("group.consumer.assignors", ["uniform", "uniform"]),
        ("group.consumer.assignors", ["sticky"]),
    ],
)
def test_a_value_out_of_bounds_stops_the_start(key: str, value: object) -> None:
    config = PluginConfig("", {key: value})

    with pytest.raises(ConfigError) as stop:
        read_settings(GroupConfig, config)

    assert stop.value.path == key

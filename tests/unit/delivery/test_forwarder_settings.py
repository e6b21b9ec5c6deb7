"""The host's keys in a forwarder's table."""

from __future__ import annotations

import pytest

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings.reading import read_settings


def test_an_empty_table_has_the_defaults() -> None:
    config = PluginConfig("plugins.otlp", {})

    settings = read_settings(ForwarderSettings, config)

    assert settings == ForwarderSettings()


def test_every_setting_has_a_key() -> None:
    keys = [
        "queue.max.bytes",
        "queue.max.records",
        "batch.max.bytes",
        "batch.max.records",
        "batch.max.age.ms",
        "deliver.timeout.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "retry.max.attempts",
        "failure.max.attempts",
    ]
    config = PluginConfig("plugins.otlp", dict.fromkeys(keys, 17))

    settings = read_settings(ForwarderSettings, config)

    config.finish()
    assert settings == ForwarderSettings(**{key.replace(".", "_"): 17 for key in keys})


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"queue.max.bytes": 0}, "queue.max.bytes"),
        ({"batch.max.records": "many"}, "batch.max.records"),
        ({"batch.max.age.ms": -1}, "batch.max.age.ms"),
        ({"queue.max.bytes": 1000}, "batch.max.bytes"),
        ({"retry.backoff.ms": 60_000}, "retry.backoff.ms"),
        ({"failure.max.attempts": 0}, "failure.max.attempts"),
    ],
)
def test_an_invalid_value_is_refused_with_its_key(table: dict[str, object], key: str) -> None:
    config = PluginConfig("plugins.otlp", table)

    with pytest.raises(ConfigError) as caught:
        read_settings(ForwarderSettings, config)

    assert caught.value.path == f"plugins.otlp.{key}"

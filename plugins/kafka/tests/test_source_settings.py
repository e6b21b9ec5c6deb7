"""The table ``source`` and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError, PluginConfig, Source
from odradek_kafka import odradek_forwarder, odradek_source
from odradek_kafka.source_settings import DEFAULTS, SourceSettings, read_source_settings

SERVERS = "127.0.0.1:9092"


def settings_of(**table: object) -> SourceSettings:
    config = PluginConfig("plugins.kafka", {"source.bootstrap.servers": SERVERS, **table})
    settings = read_source_settings(config)
    config.finish()
    return settings


def refused(**table: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        settings_of(**table)
    return caught.value


def test_without_servers_there_is_no_source() -> None:
    assert odradek_source(PluginConfig("plugins.kafka", {"bootstrap.servers": SERVERS})) is None


def test_source_and_exporter_are_independent() -> None:
    config = PluginConfig("plugins.kafka", {"source.bootstrap.servers": SERVERS})

    found = odradek_source(config)

    assert isinstance(found, Source)
    assert odradek_forwarder(config) is None


def test_omitted_keys_have_their_defaults() -> None:
    settings = settings_of()

    assert settings.topics == ("client_telemetry",)
    assert settings.batch_max_records == 500
    assert settings.options == {
        **DEFAULTS,
        "bootstrap.servers": SERVERS,
        "group.id": "odradek.source",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
    }


def test_all_keys_are_read() -> None:
    settings = settings_of(
        **{
            "source.topics": ["a", "__client_telemetry"],
            "source.group.id": "mine",
            "source.batch.max.records": 7,
            "source.client.auto.offset.reset": "latest",
            "source.client.session.timeout.ms": 10_000,
        }
    )

    assert settings.topics == ("a", "__client_telemetry")
    assert settings.batch_max_records == 7
    options = ("group.id", "auto.offset.reset", "session.timeout.ms")
    assert [settings.options[name] for name in options] == ["mine", "latest", "10000"]


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"source.bootstrap.servers": "no port:x"}, "source.bootstrap.servers"),
        ({"source.topics": []}, "source.topics"),
        ({"source.topics": "a,b c"}, "source.topics"),
        ({"source.batch.max.records": 0}, "source.batch.max.records"),
        ({"source.client.group.id": "x"}, "source.client.group.id"),
        ({"source.client.enable.auto.commit": True}, "source.client.enable.auto.commit"),
        ({"source.client.no.such.option": "x"}, "source.client.no.such.option"),
        ({"source.client.auto.offset.reset": "sometimes"}, "source.client.auto.offset.reset"),
        ({"source.client.error_cb": "x"}, "source.client.error_cb"),
        ({"source.client": "x"}, "source.client"),
        ({"bootstrap.servers": f"{SERVERS},other:1"}, "source.topics"),
        ({"bootstrap.servers": SERVERS, "topic": "t.{team}", "source.topics": "t.a"}, "source.topics"),
    ],
)
def test_an_invalid_value_is_refused_by_its_key(table: dict[str, object], key: str) -> None:
    assert refused(**table).path == f"plugins.kafka.{key}"


@pytest.mark.parametrize(
    "table",
    [
        {"bootstrap.servers": "other:9092"},
        {"bootstrap.servers": SERVERS, "topic": "elsewhere"},
        {"bootstrap.servers": SERVERS, "source.topics": "other"},
    ],
)
def test_other_clusters_and_topics_may_be_exported_to(table: dict[str, object]) -> None:
    config = PluginConfig("plugins.kafka", {"source.bootstrap.servers": SERVERS, **table})

    assert read_source_settings(config).topics


def test_secrets_are_not_shown() -> None:
    settings = settings_of(**{"source.client.sasl.password": "hush"})

    assert "hush" not in repr(settings)


def test_the_readme_lists_every_key_and_our_defaults() -> None:
    config = PluginConfig("plugins.kafka", {"source.bootstrap.servers": SERVERS})
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    read_source_settings(config)

    keys = {key for key in config.known if key.startswith("source.")} - {"source.client", "source.formats"}
    assert [key for key in keys if f"`{key}`" not in text] == []
    assert [name for name, value in DEFAULTS.items() if f"| `{name}` | `{value}` |" not in text] == []


def test_a_topic_may_have_a_format_of_its_own() -> None:
    settings = settings_of(
        **{
            "source.topics": ["a", "b.c"],
            "source.format": "otlp_proto",
            "source.formats.b.c": "odradek",
            "source.interval.ms": 300_000,
        }
    )

    assert [settings.format_of(topic) for topic in ("a", "b.c")] == ["otlp_proto", "odradek"]
    assert settings.interval_ms == 300_000


@pytest.mark.parametrize(
    ("key", "value"),
    [("source.format", "otlp"), ("source.formats.client_telemetry", "json"), ("source.formats.b", "odradek")],
)
def test_an_unknown_format_or_topic_is_refused(key: str, value: str) -> None:
    assert key in refused(**{key: value}).path

"""The configuration table and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.plugin import ConfigError, Forwarder, PluginConfig
from odradek.temporality import CumulativeForwarder
from odradek_kafka import odradek_forwarder
from odradek_kafka.client_options import DEFAULTS
from odradek_kafka.kafka_settings import Encoding, KafkaSettings, Key, read_settings
from odradek_kafka.topic_names import TopicTemplate

SERVERS = "127.0.0.1:9092"


def settings_of(**table: object) -> KafkaSettings:
    config = PluginConfig("plugins.kafka", {"bootstrap.servers": SERVERS, **table})
    settings = read_settings(config)
    config.finish()
    return settings


def refused(**table: object) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        settings_of(**table)
    return caught.value


def test_without_servers_the_plugin_is_inactive() -> None:
    assert odradek_forwarder(PluginConfig("plugins.kafka", {})) is None


def test_servers_are_the_only_required_key() -> None:
    forwarder = odradek_forwarder(PluginConfig("plugins.kafka", {"bootstrap.servers": SERVERS}))

    assert isinstance(forwarder, Forwarder)


def test_omitted_keys_have_their_defaults() -> None:
    settings = settings_of()

    options = {**DEFAULTS, "bootstrap.servers": SERVERS, "delivery.timeout.ms": "20000"}
    assert settings == KafkaSettings(options=options, bootstrap_servers=SERVERS)


def test_all_keys_are_read() -> None:
    settings = settings_of(
        **{
            "topic": "telemetry.{team}",
            "topic.max.count": 5,
            "topic.create": False,
            "topic.partitions": 3,
            "topic.replication.factor": 2,
            "liveness.topic": "alive",
            "encoding": "otlp_json",
            "key": "none",
            "deliver.timeout.ms": 9_000,
            "client.linger.ms": 20,
            "client.enable.idempotence": False,
            "client.acks": "1",
        }
    )

    assert settings.topic == TopicTemplate("telemetry.", "team")
    assert (settings.topic_max_count, settings.topic_create) == (5, False)
    assert (settings.topic_partitions, settings.topic_replication_factor) == (3, 2)
    assert (settings.liveness_topic, settings.encoding, settings.key) == ("alive", Encoding.JSON, Key.NONE)
    assert settings.deliver_timeout_ms == 9_000
    wanted = {"linger.ms": "20", "enable.idempotence": "false", "acks": "1", "delivery.timeout.ms": "6000"}
    assert wanted.items() <= settings.options.items()


@pytest.mark.parametrize("name", ["delivery.timeout.ms", "message.timeout.ms"])
def test_the_message_timeout_has_two_names(name: str) -> None:
    options = settings_of(**{f"client.{name}": "1500"}).options

    assert [options.get(key) for key in ("delivery.timeout.ms", "message.timeout.ms")].count("1500") == 1
    assert options[name] == "1500"


@pytest.mark.parametrize(
    "servers", ["a", "a:1,b:2", "PLAINTEXT://a:1", "[::1]:9092", "kafka-1.example.com:9093 , k:1"]
)
def test_servers_are_parsed_as_by_librdkafka(servers: str) -> None:
    options = settings_of(**{"bootstrap.servers": servers}).options

    assert options["bootstrap.servers"] == servers.replace(" ", "")


def test_secrets_are_not_shown() -> None:
    settings = settings_of(
        **{
            "client.security.protocol": "SASL_PLAINTEXT",
            "client.sasl.mechanism": "PLAIN",
            "client.sasl.username": "ann",
            "client.sasl.password": "secret",
        }
    )

    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers", "expected HOST:PORT"),
        ({"bootstrap.servers": "a b"}, "bootstrap.servers", "expected HOST:PORT"),
        ({"bootstrap.servers": "http://a:1/x"}, "bootstrap.servers", "expected HOST:PORT"),
        ({"topic": "a b"}, "topic", "expected a topic name"),
        ({"topic": "__client_telemetry"}, "topic", "internal"),
        ({"topic": "{client_id}"}, "topic", "expected a topic name"),
        ({"topic.max.count": 0}, "topic.max.count", "from 1 to 1000"),
        ({"topic.partitions": 0}, "topic.partitions", "expected 1"),
        ({"topic.replication.factor": -2}, "topic.replication.factor", "from -1"),
        ({"topic.create": "perhaps"}, "topic.create", "true or false"),
        ({"liveness.topic": "a.{b}"}, "liveness.topic", "expected a topic name"),
        ({"liveness.topic": "__alive"}, "liveness.topic", "internal"),
        ({"liveness.topic": "client_telemetry"}, "liveness.topic", "a topic that no push goes to"),
        (
            {"topic": "t.{team}", "liveness.topic": "t.alive"},
            "liveness.topic",
            "a topic that no push goes to",
        ),
        ({"encoding": "json"}, "encoding", "otlp_proto, otlp_json"),
        ({"key": "principal"}, "key", "client_instance_id, client_id, none"),
        ({"client": "x"}, "client", "expected a table"),
        ({"client.linger.ms": [1]}, "client.linger.ms", "expected a string"),
        ({"client.lingr.ms": 1}, "client.lingr.ms", "No such configuration property"),
        ({"client.linger.ms": "soon"}, "client.linger.ms", "Invalid value"),
        ({"client.linger.ms": -5}, "client.linger.ms", "outside allowed range"),
        ({"client.bootstrap.servers": "a"}, "client.bootstrap.servers", "belongs to the table"),
        ({"client.transactional.id": "a"}, "client.transactional.id", "no transactions"),
        ({"client.delivery.report.only.error": True}, "client.delivery.report.only.error", "every report"),
        ({"client.error_cb": "a"}, "client.error_cb", "cannot be set in a file: its value is a function"),
        ({"client.logger": "a"}, "client.logger", "cannot be set in a file: its value is a function"),
        ({"client.acks": 0, "client.enable.idempotence": False}, "client.acks", "expected all"),
        ({"client.acks": 1}, "client", "must be set to `all`"),
        (
            {"client.delivery.timeout.ms": 30_000},
            "client.delivery.timeout.ms",
            "less than deliver.timeout.ms",
        ),
        ({"client.delivery.timeout.ms": "x"}, "client.delivery.timeout.ms", "whole number"),
        (
            {"client.security.protocol": "SSL", "client.ssl.ca.location": "/nowhere/ca.pem"},
            "client",
            "ssl.ca.location failed",
        ),
        (
            {"client.security.protocol": "SASL_SSL", "client.sasl.mechanism": "PLAIN"},
            "client",
            "sasl.username and sasl.password must be set",
        ),
        (
            {"client.security.protocol": "SASL_SSL", "client.sasl.mechanism": "MAGIC"},
            "client",
            "Unsupported SASL mechanism",
        ),
        ({"client.security.protocol": "TLS"}, "client.security.protocol", "Invalid value"),
        ({"topics": "a"}, "topics", "unknown key"),
    ],
)
def test_an_invalid_value_is_refused_with_its_key(table: dict[str, Any], key: str, problem: str) -> None:
    error = refused(**table)

    assert error.path == f"plugins.kafka.{key}"
    assert problem in error.problem


def test_validating_the_options_prints_nothing_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    refused(**{"client.security.protocol": "SSL", "client.ssl.ca.location": "/nowhere/ca.pem"})

    assert capfd.readouterr().err == ""


def test_the_readme_lists_every_key_and_our_defaults() -> None:
    config = PluginConfig("plugins.kafka", {"bootstrap.servers": SERVERS})
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    read_settings(config)

    keys = config.known - {"client"}
    assert [key for key in keys if f"`{key}`" not in text] == []
    assert [name for name, value in DEFAULTS.items() if f"| `{name}` | `{value}` |" not in text] == []


def test_a_topic_with_totals_has_a_file_for_them(tmp_path: Path) -> None:
    table = {
        "bootstrap.servers": SERVERS,
        "temporality": "cumulative",
        "totals.file": str(tmp_path / "totals.db"),
    }

    forwarder = odradek_forwarder(PluginConfig("plugins.kafka", table))

    assert isinstance(forwarder, CumulativeForwarder)

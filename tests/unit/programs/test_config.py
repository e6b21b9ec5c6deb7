from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker_settings import Endpoint
from odradek.net.listener import ListenerAddress
from odradek.plugin.config import ConfigError
from odradek.programs.config import REFERENCE, load_config
from odradek.telemetry.telemetry_config import ErrorPolicy
from odradek.wire.compression import Codec
from odradek.wire.config_resource import ConfigSource


def written(folder: Path, text: str) -> Path:
    path = folder / "odradek.toml"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_apply() -> None:
    config = load_config()

    assert config.listeners == (ListenerAddress("PLAINTEXT", "127.0.0.1", 9092),)
    assert config.telemetry.telemetry_max_bytes == 1_048_576
    assert config.telemetry.error_policy is ErrorPolicy.CLIENT_SAFE
    assert config.metrics_listener is None


def test_a_dotted_key_may_be_quoted_or_not(tmp_path: Path) -> None:
    quoted = load_config(written(tmp_path, '"socket.request.max.bytes" = 5000\n'))
    bare = load_config(written(tmp_path, "socket.request.max.bytes = 5000\n"))

    assert quoted.socket_request_max_bytes == bare.socket_request_max_bytes == 5000


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "node.id = 3\nlisteners = ['PLAINTEXT://127.0.0.1:1']\n")

    config = load_config(path, ["node.id=4", "listeners=PLAINTEXT://localhost:0,PLAINTEXT_B://[::1]:5"])

    assert config.broker.node_id == 4
    assert config.listeners == (
        ListenerAddress("PLAINTEXT", "localhost", 0),
        ListenerAddress("PLAINTEXT_B", "::1", 5),
    )


def test_subscriptions_become_the_strings_that_kafka_stores(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [subscriptions.latency]
        metrics = ["org.apache.kafka.producer.", "org.apache.kafka.consumer."]
        interval.ms = 5000
        match = ["client_id=a.*", "client_software_name=x"]
        """,
    )

    config = load_config(path)

    assert config.subscriptions == {
        "latency": {
            "metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.",
            "interval.ms": "5000",
            "match": "client_id=a.*,client_software_name=x",
        }
    }


def test_a_subscription_name_may_contain_dots(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "[subscriptions.'team.a']\nmetrics = 'x'\ninterval.ms = 100\n[subscriptions.b]\npreset = 'all'\n",
    )

    config = load_config(path)

    assert config.subscriptions == {
        "team.a": {"metrics": "x", "interval.ms": "100"},
        "b": {"metrics": "*", "interval.ms": "60000"},
    }


def test_each_plugin_has_its_own_table(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [plugins.otlp]
        endpoint = "http://collector:4318"
        headers = { team = "core" }
        [plugins.enrich]
        """,
    )

    config = load_config(path, ["plugins.otlp.timeout.ms=500"], ["stdout"])

    assert config.plugins == {
        "otlp": {"endpoint": "http://collector:4318", "headers.team": "core", "timeout.ms": "500"},
        "enrich": {},
    }
    assert config.requested_plugins == {"stdout": None}


def test_topic_defaults_have_kafkas_broker_keys() -> None:
    config = load_config(None, ["message.max.bytes=2000", "compression.type=zstd"])

    assert config.log_defaults.max_message_bytes == 2000
    assert config.log_defaults.compression_type is Codec.ZSTD


@pytest.mark.parametrize(
    ("overrides", "retention_ms"),
    [
        ([], 604_800_000),
        (["log.retention.hours=2"], 7_200_000),
        (["log.retention.hours=2", "log.retention.minutes=3"], 180_000),
        (["log.retention.hours=2", "log.retention.minutes=3", "log.retention.ms=4"], 4),
        (["log.retention.hours=-1"], -1),
    ],
)
def test_the_finest_unit_of_retention_wins(overrides: list[str], retention_ms: int) -> None:
    config = load_config(None, overrides)

    assert config.log_defaults.retention_ms == retention_ms


@pytest.mark.parametrize("override", ["log.retention.hours=many", "log.roll.hours=0", "log.cleanup.policy=x"])
def test_a_bad_topic_default_is_refused_with_its_key(override: str) -> None:
    key = override.partition("=")[0]

    with pytest.raises(ConfigError) as problem:
        load_config(None, [override])

    assert problem.value.path in (key, "log.roll.ms")


def test_log_directories_and_their_upkeep_are_read() -> None:
    config = load_config(
        None,
        ["log.dirs=/a,/b", "log.retention.check.interval.ms=7", "log.cleaner.enable=false",
         "log.cleanup.policy=compact,delete"],
    )  # fmt: skip

    assert config.log_dirs == (Path("/a"), Path("/b"))
    assert (config.upkeep.retention_check_interval_ms, config.upkeep.cleaner_enable) == (7, False)
    assert config.log_defaults.cleanup_policy == {"compact", "delete"}


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("PLAINTEXT", "PLAINTEXT"),
        ("PLAINTEXT_SASL", "PLAINTEXT"),
        ("SASL_PLAINTEXT", "SASL_PLAINTEXT"),
        ("SASL_PLAINTEXT_EXTERNAL", "SASL_PLAINTEXT"),
        ("CLIENTS", "SASL_PLAINTEXT"),
        ("PLAINTEXT_ODD", "SASL_PLAINTEXT"),
    ],
)
def test_a_listener_has_the_protocol_of_its_name_or_of_the_map(name: str, protocol: str) -> None:
    protocols = "listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,PLAINTEXT_ODD:SASL_PLAINTEXT"

    config = load_config(None, [f"listeners={name}://localhost:1", protocols])

    assert [listener.security_protocol for listener in config.listeners] == [protocol]


def test_passwords_in_clear_text_must_be_enabled() -> None:
    by_default = load_config(None).sasl.enabled_mechanisms

    enabled = load_config(None, ["sasl.enabled.mechanisms=PLAIN"]).sasl.enabled_mechanisms

    assert by_default == ("SCRAM-SHA-256", "SCRAM-SHA-512")
    assert enabled == ("PLAIN",)


def test_advertised_listeners_are_returned_to_clients() -> None:
    config = load_config(
        None, ["listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners=PLAINTEXT://kafka.example:19092"]
    )

    assert config.advertised == {"PLAINTEXT": Endpoint("kafka.example", 19092)}


@pytest.mark.parametrize(
    ("override", "path", "expected"),
    [
        ("no.such.key=1", "no.such.key", f"unknown key; all keys: {REFERENCE}"),
        ("log.dir=/a", "log.dir", "unknown key (did you mean log.dirs?); all keys: /"),
        ("node.id=x", "node.id", "whole number from 0"),
        ("node.id=-1", "node.id", "whole number from 0"),
        ("telemetry.max.bytes=0", "telemetry.max.bytes", "whole number from 1"),
        ("telemetry.error.policy=strict", "telemetry.error.policy", "client-safe, kafka"),
        ("auto.create.topics.enable=perhaps", "auto.create.topics.enable", "true or false"),
        ("listeners=", "listeners", "one or more listeners"),
        ("listeners=localhost:9092", "listeners", "NAME://HOST:PORT"),
        (
            "listeners=CLIENTS://localhost:9092",
            "listeners",
            "expected a name that is or begins with",
        ),
        ("listener.security.protocol.map=CLIENTS:TLS", "listener.security.protocol.map", "NAME:PROTOCOL"),
        ("listener.security.protocol.map=CLIENTS", "listener.security.protocol.map", "NAME:PROTOCOL"),
        ("listener.security.protocol.map=A:PLAINTEXT,A:PLAINTEXT", "listener.security.protocol.map", "found"),
        (
            "sasl.enabled.mechanisms=GSSAPI",
            "sasl.enabled.mechanisms",
            "expected one or more of SCRAM-SHA-256",
        ),
        ("sasl.enabled.mechanisms=", "sasl.enabled.mechanisms", "expected one or more of"),
        ("listeners=PLAINTEXT://localhost:99999", "listeners", "NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://a:1,PLAINTEXT://b:2", "listeners", "different names"),
        ("listeners=TLS://a:1", "listeners", "PLAINTEXT"),
        ("advertised.listeners=PLAINTEXT_B://a:1", "advertised.listeners", "no listener has the name"),
        ("listeners=PLAINTEXT://0.0.0.0:9092", "advertised.listeners", "PLAINTEXT://0.0.0.0:9092"),
        ("advertised.listeners=PLAINTEXT://:9092", "advertised.listeners", "clients can dial"),
        ("advertised.listeners=PLAINTEXT://[::]:9092", "advertised.listeners", "clients can dial"),
        ("advertised.listeners=PLAINTEXT://kafka:0", "advertised.listeners", "clients can dial"),
        ("advertised.listeners=PLAINTEXT://a b:9092", "advertised.listeners", "NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://local host:9092", "listeners", "NAME://HOST:PORT"),
        ("subscriptions.x=5", "subscriptions.x", "expected a table"),
        ("subscriptions.x.interval.ms=5", "subscriptions.x.interval.ms", "from 100 to 3600000, found '5'"),
        ("subscriptions.a.b.interval.ms=x", "subscriptions.a.b.interval.ms", "expected a whole number"),
        ("subscriptions.x.intervall.ms=5", "subscriptions.x.intervall.ms", "did you mean interval.ms?"),
        ("subscriptions.team.a.metric=*", "subscriptions.team.a.metric", "did you mean metrics?"),
        ("subscriptions.x.preset=most", "subscriptions.x.preset", "found 'most'"),
        ("subscriptions.x.foo=5", "subscriptions.x.foo", "unknown key; all keys: /"),
        ("metrics.listener=localhost:9100", "metrics.listener", "http://HOST:PORT"),
        ("metrics.listener=http://localhost:x", "metrics.listener", "http://HOST:PORT"),
        ("metrics.listener.token=", "metrics.listener.token", "expected a token of visible ASCII characters"),
        ("metrics.listener.token=a b", "metrics.listener.token", "expected a token of visible ASCII"),
        ("metrics.otlp.endpoint=collector:4318", "metrics.otlp.endpoint", "http://HOST:PORT"),
        ("metrics.otlp.endpoint=http://me:pw@a:1", "metrics.otlp.endpoint", "expected http://HOST:PORT or"),
        ("metrics.otlp.headers=a=b,secret", "metrics.otlp.headers", "header 2 is not"),
        ("compression.type=rar", "compression.type", "rar"),
        ("plugins.otlp=5", "plugins.otlp", "expected a table"),
        ("queued.max.request.bytes=1000", "queued.max.request.bytes", "expected at least 104857600"),
        ("node.id", "--set", "expected key=value"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(override: str, path: str, expected: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, [override])

    assert refused.value.path == path
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node.id = ", "is not TOML"),
        ('[subscriptions.x]\nmetrics = "a"\npreset = "all"\n', "subscriptions.x: expected either preset or"),
        ("[subscriptions.x]\nmetrics = 1.5\n", "subscriptions.x.metrics: expected a string"),
        ("listeners = [1]\n", "listeners: expected a list of strings"),
        ("node.id = true\n", "node.id: expected a whole number"),
        ("[plugin.otlp]\nendpoint = 'x'\n", "plugin.otlp.endpoint: unknown key"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(ConfigError, match=expected):
        load_config(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("overrides", "data_dir", "shown"),
    [
        ([], "odradek-data", ConfigSource.DEFAULT),
        (["log.dirs=/a,/b"], "/a", ConfigSource.DEFAULT),
        (["log.dirs=/a,/b", "data.dir=/c"], "/c", ConfigSource.STATIC_BROKER),
        (["data.dir=/c"], "/c", ConfigSource.STATIC_BROKER),
    ],
)
def test_the_metadata_is_in_the_first_directory_of_logs_unless_it_has_its_own(
    overrides: list[str], data_dir: str, shown: ConfigSource
) -> None:
    config = load_config(None, overrides)

    assert config.data_dir == Path(data_dir)
    value = config.start_values["data.dir"]
    assert (value.text, value.given) == (data_dir, shown is ConfigSource.STATIC_BROKER)


def test_the_keys_of_the_file_are_remembered(tmp_path: Path) -> None:
    path = written(tmp_path, "num.partitions = 1\n[plugins.otlp]\nendpoint = 'x'\n")

    config = load_config(path, ["node.id=1"])

    given = {key for key, value in config.start_values.items() if value.given}
    assert given == {"num.partitions", "node.id"}

"""The configuration table, the environment variables, and their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError, Forwarder, PluginConfig
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_settings import Compression, OtlpProtocol, OtlpSettings
from odradek_otlp.otlp_table import read_settings

ENDPOINT = "http://collector:4318"


def settings_of(table: dict[str, object], **variables: str) -> OtlpSettings:
    config = PluginConfig("plugins.otlp", table)
    environ = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}
    settings = read_settings(config, environ)
    config.finish()
    assert settings is not None
    return settings


def test_without_an_endpoint_the_plugin_is_inactive() -> None:
    config = PluginConfig("plugins.otlp", {})

    forwarder = odradek_forwarder(config)

    assert forwarder is None


def test_variables_are_ignored_without_an_endpoint() -> None:
    config = PluginConfig("plugins.otlp", {})

    settings = read_settings(config, {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})

    assert settings is None


def test_an_endpoint_is_the_only_required_key() -> None:
    settings = settings_of({"endpoint": ENDPOINT})

    assert settings == OtlpSettings(
        protocol=OtlpProtocol.HTTP, target="http://collector:4318/v1/metrics", secure=False, timeout_ms=10_000
    )


def test_an_endpoint_in_a_variable_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ENDPOINT)

    forwarder = odradek_forwarder(PluginConfig("plugins.otlp", {}))

    assert isinstance(forwarder, Forwarder)


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://c:4318", "http://c:4318/v1/metrics"),
        ("http://c:4318/", "http://c:4318/v1/metrics"),
        ("https://vendor.example/otlp", "https://vendor.example/otlp/v1/metrics"),
        ("http://c:4318/v1/metrics", "http://c:4318/v1/metrics"),
        ("http://c:4318/v1/metrics/", "http://c:4318/v1/metrics"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/metrics"),
    ],
)
def test_an_http_endpoint_is_a_base_url(endpoint: str, target: str) -> None:
    from_table = settings_of({"endpoint": endpoint})
    from_variable = settings_of({}, ENDPOINT=endpoint)

    assert from_table.target == from_variable.target == target


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://c:4318", "http://c:4318/"),
        ("http://c:4318/custom/path", "http://c:4318/custom/path"),
        ("http://c:4318/v1/metrics", "http://c:4318/v1/metrics"),
    ],
)
def test_the_variable_for_metrics_is_the_whole_url(endpoint: str, target: str) -> None:
    settings = settings_of({}, METRICS_ENDPOINT=endpoint, ENDPOINT="http://other:1")

    assert settings.target == target


@pytest.mark.parametrize(
    ("endpoint", "insecure", "target", "secure"),
    [
        ("http://c:4317", False, "c:4317", False),
        ("https://c:4317", True, "c:4317", True),
        ("https://c/", False, "c:4317", True),
        ("c:4317", False, "c:4317", True),
        ("c:4317", True, "c:4317", False),
        ("localhost:14317", True, "localhost:14317", False),
        ("[::1]:4317", True, "[::1]:4317", False),
    ],
)
def test_the_scheme_of_a_grpc_endpoint_selects_tls(
    endpoint: str, insecure: bool, target: str, secure: bool
) -> None:
    settings = settings_of({"endpoint": endpoint, "protocol": "grpc", "insecure": insecure})

    assert (settings.target, settings.secure) == (target, secure)


def test_all_keys_are_read() -> None:
    settings = settings_of(
        {
            "endpoint": ENDPOINT,
            "compression": "zstd",
            "timeout.ms": 250,
            "headers.Authorization": "Bearer abc",
            "headers.x.tenant": "7",
        }
    )

    assert settings.compression is Compression.ZSTD
    assert settings.timeout_ms == 250
    assert settings.headers == {"authorization": "Bearer abc", "x.tenant": "7"}


def test_all_variables_are_read() -> None:
    settings = settings_of(
        {},
        ENDPOINT="http://c:4317",
        PROTOCOL="grpc",
        HEADERS="Authorization=Bearer%20abc, x-tenant=a%3Db",
        COMPRESSION="gzip",
        TIMEOUT="250",
    )

    assert settings == OtlpSettings(
        protocol=OtlpProtocol.GRPC,
        target="c:4317",
        secure=False,
        headers={"authorization": "Bearer abc", "x-tenant": "a=b"},
        compression=Compression.GZIP,
        timeout_ms=250,
        connect_timeout_ms=250,
    )


def test_the_variable_for_metrics_wins_over_the_general_one() -> None:
    settings = settings_of({"endpoint": ENDPOINT}, TIMEOUT="1", METRICS_TIMEOUT="2")

    assert settings.timeout_ms == 2


def test_the_table_wins_over_the_variables() -> None:
    settings = settings_of(
        {"endpoint": ENDPOINT, "timeout.ms": 3, "headers.a": "table"},
        METRICS_ENDPOINT="http://other:1",
        METRICS_TIMEOUT="2",
        HEADERS="b=variable",
    )

    assert settings.target == "http://collector:4318/v1/metrics"
    assert settings.timeout_ms == 3
    assert settings.headers == {"a": "table"}


def test_an_empty_variable_is_not_set() -> None:
    settings = settings_of({"endpoint": ENDPOINT}, TIMEOUT="", COMPRESSION=" ")

    assert settings == settings_of({"endpoint": ENDPOINT})


def test_headers_are_not_shown() -> None:
    settings = settings_of({"endpoint": ENDPOINT, "headers.authorization": "Bearer s3cr3t"})

    assert "s3cr3t" not in repr(settings)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"endpoint": "collector:4318"}, "endpoint"),
        ({"endpoint": "ftp://collector"}, "endpoint"),
        ({"endpoint": "http://"}, "endpoint"),
        ({"endpoint": "http://c:0"}, "endpoint"),
        ({"endpoint": "http://c:99999"}, "endpoint"),
        ({"endpoint": "http://c:"}, "endpoint"),
        ({"endpoint": "http://[::1"}, "endpoint"),
        ({"endpoint": "http://c/?a=b"}, "endpoint"),
        ({"endpoint": ""}, "endpoint"),
        ({"endpoint": 4318}, "endpoint"),
        ({"endpoint": "http://c:4318/v1/metrics", "protocol": "grpc"}, "endpoint"),
        ({"endpoint": "unix:/run/c.sock", "protocol": "grpc"}, "endpoint"),
        ({"endpoint": ENDPOINT, "protocol": "http/json"}, "protocol"),
        ({"protocol": "http/json"}, "protocol"),
        ({"endpoint": ENDPOINT, "compression": "lz4"}, "compression"),
        ({"endpoint": "c:1", "protocol": "grpc", "compression": "zstd"}, "compression"),
        ({"endpoint": ENDPOINT, "timeout.ms": 0}, "timeout.ms"),
        ({"endpoint": ENDPOINT, "timeout.ms": "soon"}, "timeout.ms"),
        ({"endpoint": ENDPOINT, "insecure": "perhaps"}, "insecure"),
        ({"endpoint": ENDPOINT, "headers": "a=b"}, "headers"),
        ({"endpoint": ENDPOINT, "headers.a": 1}, "headers.a"),
        ({"endpoint": ENDPOINT, "headers.a b": "1"}, "headers.a b"),
        ({"endpoint": ENDPOINT, "headers.a": "1\r\nb: 2"}, "headers.a"),
        ({"endpoint": ENDPOINT, "headers.Content-Type": "text/plain"}, "headers.Content-Type"),
        ({"endpoint": "c:1", "protocol": "grpc", "headers.grpc-timeout": "1"}, "headers.grpc-timeout"),
        ({"endpoint": "c:1", "protocol": "grpc", "headers.a-bin": "1"}, "headers.a-bin"),
    ],
)
def test_an_invalid_table_is_refused_with_its_key(table: dict[str, object], key: str) -> None:
    config = PluginConfig("plugins.otlp", table)

    with pytest.raises(ConfigError) as caught:
        read_settings(config, {})

    assert caught.value.path == f"plugins.otlp.{key}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENDPOINT", "collector"),
        ("METRICS_ENDPOINT", "collector"),
        ("PROTOCOL", "http/json"),
        ("METRICS_COMPRESSION", "brotli"),
        ("TIMEOUT", "10s"),
        ("HEADERS", "authorization"),
        ("HEADERS", "a b=1"),
        ("INSECURE", "maybe"),
    ],
)
def test_an_invalid_variable_is_named(name: str, value: str) -> None:
    config = PluginConfig("plugins.otlp", {})
    variable = f"OTEL_EXPORTER_OTLP_{name}"
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": ENDPOINT, variable: value}

    with pytest.raises(ConfigError) as caught:
        read_settings(config, environ)

    assert caught.value.path == variable


@pytest.mark.parametrize(
    "table",
    [
        {"endpoint": ENDPOINT, "headers.authorization": "Bearer secret\n"},
        {"endpoint": "http://user:secret@collector"},
    ],
)
def test_an_error_does_not_show_a_secret(table: dict[str, object]) -> None:
    config = PluginConfig("plugins.otlp", table)

    with pytest.raises(ConfigError) as caught:
        read_settings(config, {})

    assert "secret" not in str(caught.value)


def test_the_readme_lists_every_key() -> None:
    config = PluginConfig("plugins.otlp", {"endpoint": ENDPOINT})
    text = (Path(__file__).parent.parent / "README.md").read_text()

    read_settings(config, {})

    assert [key for key in config.known if f"`{key}" not in text] == []

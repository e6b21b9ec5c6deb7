"""Several destinations, secrets and certificates in the configuration table."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.endpoints import SecretKind
from odradek.plugin import ConfigError, Forwarder, PluginConfig
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_settings import OtlpProtocol
from odradek_otlp.otlp_table import read_destinations, read_settings

ENDPOINT = "http://collector:4318"


def destinations(**table: object) -> dict[str, object]:
    return {f"destinations.{name.replace('__', '.')}": value for name, value in table.items()}


def test_each_destination_is_a_forwarder_with_its_own_filter() -> None:
    table = destinations(
        all__endpoint=ENDPOINT,
        few__endpoint="http://vendor:4317",
        few__protocol="grpc",
        few__metrics=["org.apache.kafka.consumer.", "custom."],
        few__headers__authorization="Bearer abc",
    )
    config = PluginConfig("plugins.otlp", table)

    found = odradek_forwarder(config)

    config.finish()
    assert isinstance(found, dict)
    assert list(found) == ["all", "few"]
    assert all(isinstance(forwarder, Forwarder) for forwarder in found.values())
    few = found["few"]
    assert isinstance(few, OtlpForwarder)
    assert few.settings.protocol is OtlpProtocol.GRPC
    assert few.settings.headers == {"authorization": "Bearer abc"}
    assert few.prefixes == (b"org.apache.kafka.consumer.", b"custom.")


def test_variables_do_not_apply_to_one_of_several_destinations() -> None:
    config = PluginConfig("plugins.otlp", destinations(a__endpoint=ENDPOINT))

    found = read_destinations(config, {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"})

    assert found["a"].timeout_ms == 10_000


def test_the_keys_of_the_host_belong_to_the_outer_table() -> None:
    config = PluginConfig("plugins.otlp", destinations(a__endpoint=ENDPOINT) | {"batch.max.records": 160})

    assert list(read_destinations(config, {})) == ["a"]


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (destinations(a__protocol="grpc"), "destinations.a.endpoint"),
        (destinations(a__endpoint="nowhere"), "destinations.a.endpoint"),
        (destinations(a__endpoint=ENDPOINT, a__endpiont="x"), "destinations.a.endpiont"),
        (destinations(a__endpoint=ENDPOINT) | {"endpoint": ENDPOINT}, "endpoint"),
        (destinations(a__endpoint=ENDPOINT) | {"headers.x": "1"}, "headers.x"),
        ({"destinations.A.endpoint": ENDPOINT}, "destinations.A.endpoint"),
        ({"destinations.a": ENDPOINT}, "destinations.a"),
        ({"endpoint": ENDPOINT, "metrics": [""]}, "metrics"),
        ({"endpoint": ENDPOINT, "metrics": 7}, "metrics"),
        ({"endpoint": ENDPOINT, "requests.in.flight": 0}, "requests.in.flight"),
        ({"endpoint": ENDPOINT, "connect.timeout.ms": 0}, "connect.timeout.ms"),
        ({"endpoint": ENDPOINT, "bearer.token.file": "/no/such/file"}, "bearer.token.file"),
        ({"endpoint": ENDPOINT, "certificate.file": "/no/such/file"}, "certificate.file"),
    ],
)
def test_an_invalid_table_is_refused_with_its_key(table: dict[str, object], key: str) -> None:
    config = PluginConfig("plugins.otlp", table)

    with pytest.raises(ConfigError) as caught:
        read_destinations(config, {})

    assert caught.value.path == f"plugins.otlp.{key}"


@pytest.mark.parametrize("metrics", ["*", ["a.", "*"], []])
def test_a_star_selects_every_metric(metrics: object) -> None:
    settings = read_settings(PluginConfig("plugins.otlp", {"endpoint": ENDPOINT, "metrics": metrics}), {})

    assert settings is not None
    assert settings.metrics == ()


@pytest.mark.parametrize(
    ("kind", "text", "headers"),
    [
        (SecretKind.BEARER, "abc.def\n", {"authorization": "Bearer abc.def"}),
        (SecretKind.BASIC, "user:pass:word\n", {"authorization": "Basic dXNlcjpwYXNzOndvcmQ="}),
        (SecretKind.HEADERS, "# key\nX-Key: a: b\n\ntenant:7", {"x-key": "a: b", "tenant": "7"}),
    ],
)
def test_a_secret_in_a_file_becomes_a_header(
    tmp_path: Path, kind: SecretKind, text: str, headers: dict[str, str]
) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    table = {"endpoint": ENDPOINT, "headers.tenant": "1", kind.value: str(file)}

    settings = read_settings(PluginConfig("plugins.otlp", table), {})

    assert settings is not None
    assert settings.credentials().request_headers() == {"tenant": "1"} | headers


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (SecretKind.BEARER, b""),
        (SecretKind.BEARER, b"two words"),
        (SecretKind.BEARER, b"s3cr3t\nline"),
        (SecretKind.BEARER, b"\xff\xfe"),
        (SecretKind.BEARER, b"x" * 70_000),
        (SecretKind.BASIC, b"s3cr3t"),
        (SecretKind.BASIC, b"a:s3cr3t\nb"),
        (SecretKind.HEADERS, b"s3cr3t"),
        (SecretKind.HEADERS, b"a b: s3cr3t"),
        (SecretKind.HEADERS, b"content-type: s3cr3t"),
        (SecretKind.HEADERS, "a: s3cr3té".encode()),
    ],
)
def test_a_file_without_a_secret_stops_the_start(tmp_path: Path, kind: SecretKind, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    config = PluginConfig("plugins.otlp", {"endpoint": ENDPOINT, kind.value: str(file)})

    with pytest.raises(ConfigError) as caught:
        read_settings(config, {})

    assert caught.value.path == f"plugins.otlp.{kind.value}"
    assert "s3cr3t" not in str(caught.value)


def test_only_one_authorization_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("user:password")
    keys: list[dict[str, object]] = [
        {"basic.auth.file": str(file), "bearer.token.file": str(file)},
        {"basic.auth.file": str(file), "headers.authorization": "Bearer abc"},
    ]

    for table in keys:
        with pytest.raises(ConfigError, match=r"basic\.auth\.file"):
            read_settings(PluginConfig("plugins.otlp", {"endpoint": ENDPOINT} | table), {})


def test_a_file_that_becomes_invalid_keeps_the_last_valid_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    table = {"endpoint": ENDPOINT, "bearer.token.file": str(file)}
    settings = read_settings(PluginConfig("plugins.otlp", table), {})
    assert settings is not None
    credentials = settings.credentials()

    found = []
    for text in ("", "second", None, "third"):
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        found.append(credentials.request_headers()["authorization"])

    assert found == ["Bearer first", "Bearer second", "Bearer second", "Bearer third"]
    kept = "secret not renewed, using the last good one"
    assert [record.message for record in caplog.records] == [kept] * 2


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cr3t")
    table = {"endpoint": ENDPOINT, "bearer.token.file": str(file)}
    settings = read_settings(PluginConfig("plugins.otlp", table), {})
    assert settings is not None

    assert "s3cr3t" not in repr(settings) + repr(settings.credentials())

"""The table ``source`` and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.endpoints import Address
from odradek.plugin import ConfigError, PluginConfig, Source
from odradek_otlp import odradek_source
from odradek_otlp.source_settings import SourceSettings, read_source_settings


def settings_of(**table: object) -> SourceSettings:
    config = PluginConfig("plugins.otlp", {"source.http.listener": "127.0.0.1:4318", **table})
    settings = read_source_settings(config)
    config.finish()
    return settings


def test_without_a_listener_there_is_no_source() -> None:
    assert odradek_source(PluginConfig("plugins.otlp", {"endpoint": "http://127.0.0.1:4318"})) is None


def test_a_listener_is_the_only_required_key() -> None:
    found = odradek_source(PluginConfig("plugins.otlp", {"source.http.listener": "[::1]:4318"}))

    over_grpc = odradek_source(PluginConfig("plugins.otlp", {"source.grpc.listener": "127.0.0.1:0"}))
    assert isinstance(found, Source)
    assert isinstance(over_grpc, Source)
    assert settings_of() == SourceSettings(http=Address("127.0.0.1", 4318))


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"source.http.listener": "4318"}, "source.http.listener"),
        ({"source.http.listener": "a:70000"}, "source.http.listener"),
        ({"source.grpc.listener": "4317"}, "source.grpc.listener"),
        ({"source.tls.client.ca": __file__}, "source.tls.certificate"),
        *(
            ({f"source.{key}": 0}, f"source.{key}")
            for key in (
                "json.max.bytes",
                "grpc.message.max.bytes",
                "request.timeout.ms",
                "idle.timeout.ms",
                "requests.max",
                "resources.max",
            )
        ),
        ({"source.request.max.bytes": 0}, "source.request.max.bytes"),
        ({"source.buffer.max.bytes": 1_000}, "source.buffer.max.bytes"),
        ({"source.connections.max": 0}, "source.connections.max"),
        ({"source.interval.ms": 0}, "source.interval.ms"),
        ({"source.token.file": "/no/such/file"}, "source.token.file"),
        ({"source.token.file": "/dev/null"}, "source.token.file"),
        ({"source.tls.certificate": "/no/such/file"}, "source.tls.certificate"),
        ({"source.tls.certificate": __file__}, "source.tls.certificate"),
        ({"source.tls.key": __file__}, "source.tls.certificate"),
    ],
)
def test_an_invalid_value_is_refused_by_its_key(table: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(**table)

    assert caught.value.path == f"plugins.otlp.{key}"


def test_the_readme_lists_every_key() -> None:
    config = PluginConfig("plugins.otlp", {"source.http.listener": "127.0.0.1:4318"})
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")

    read_source_settings(config)

    assert [key for key in config.known if f"`{key}`" not in text] == []

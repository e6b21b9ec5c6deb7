"""The plugin's table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.endpoints import Address
from odradek.plugin import ConfigError, PluginConfig
from odradek.temporality import CumulativeForwarder
from odradek_prometheus import odradek_forwarder
from odradek_prometheus.scrape_settings import ScrapeSettings, read_scrape


def read(tmp_path: Path, **keys: Any) -> ScrapeSettings | None:
    table = {"listener": "http://127.0.0.1:9404", "totals.file": str(tmp_path / "totals.db")}
    config = PluginConfig(
        "plugins.prometheus", table | {key.replace("_", "."): value for key, value in keys.items()}
    )
    found = read_scrape(config)
    config.finish()
    return found


def test_without_a_table_there_is_no_forwarder() -> None:
    assert odradek_forwarder(PluginConfig("plugins.prometheus", {})) is None


def test_a_listener_is_a_forwarder(tmp_path: Path) -> None:
    table = {"listener": "http://127.0.0.1:0", "totals.file": str(tmp_path / "totals.db")}

    forwarders = odradek_forwarder(PluginConfig("plugins.prometheus", table))

    assert isinstance(forwarders, dict)
    assert list(forwarders) == ["scrape"]
    assert isinstance(forwarders["scrape"], CumulativeForwarder)


@pytest.mark.parametrize(
    ("listener", "address"),
    [
        ("http://127.0.0.1:9404", Address("127.0.0.1", 9404)),
        ("http://:9404", Address("127.0.0.1", 9404)),
        ("http://[::1]:9404/", Address("::1", 9404)),
        ("http://0.0.0.0:9404", Address("0.0.0.0", 9404)),
    ],
)
def test_addresses(tmp_path: Path, listener: str, address: Address) -> None:
    settings = read(tmp_path, listener=listener)

    assert settings is not None
    assert settings.address == address


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"listener": "127.0.0.1:9404"}, "listener: expected http://HOST:PORT"),
        ({"listener": "http://127.0.0.1"}, "listener: expected http://HOST:PORT"),
        ({"listener": "http://127.0.0.1:9404/metrics"}, "listener: expected http://HOST:PORT"),
        ({"listener": "https://127.0.0.1:9404"}, "listener: expected tls.certificate"),
        ({"totals_topic": "t"}, "totals.topic: expected only one of totals.file and totals.topic"),
        ({"labels": ["client_id"]}, "labels: expected client_instance_id among them"),
        ({"prefix": "a-b"}, "prefix: expected letters, digits, _ and :"),
        ({"names": "dotted"}, "names: expected one of escaped, utf8"),
        ({"linger_ms": 300_001}, "linger.ms: expected a whole number from 0 to 300000"),
        ({"lag_compatible": ["burrow"]}, "lag.compatible: expected a list of kafka_exporter"),
        ({"temporality": "delta"}, "temporality: unknown key"),
    ],
)
def test_errors_name_the_key(tmp_path: Path, keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, **keys)

    assert str(caught.value).startswith(f"plugins.prometheus.{problem}")

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from odradek.quota.connection_limits import ConnectionLimits

TWO = "listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_INTERNAL://127.0.0.1:0"


def test_without_keys_there_are_no_limits() -> None:
    config = load_config()

    assert config.connections == ConnectionLimits()
    assert config.inter_broker_listener is None


def test_limits_of_the_file_are_read_and_shown(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(
        '"max.connections" = 100\n'
        '"max.connections.per.ip.overrides" = ["10.0.0.1:7", "::1:8"]\n'
        '"listener.name.plaintext.max.connection.creation.rate" = 5\n',
        encoding="utf-8",
    )

    config = load_config(file)

    rate = "listener.name.plaintext.max.connection.creation.rate"
    assert config.connections == ConnectionLimits(
        max_connections=100, overrides={"10.0.0.1": 7, "::1": 8}, by_listener={rate: 5}
    )
    shown = config.start_values
    assert shown["max.connections.per.ip.overrides"].text == "10.0.0.1:7,::1:8"
    assert (shown[rate].text, shown[rate].given) == ("5", True)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("max.connections=-1", "max.connections"),
        ("max.connections.per.ip=0", "max.connections.per.ip"),
        ("max.connection.creation.rate=fast", "max.connection.creation.rate"),
        ("max.connections.per.ip.overrides=10.0.0.1", "max.connections.per.ip.overrides"),
        ("listener.name.plaintext.max.connections=0", "listener.name.plaintext.max.connections"),
        ("listener.name.other.max.connections=5", "listener.name.other.max.connections"),
        ("inter.broker.listener.name=OTHER", "inter.broker.listener.name"),
    ],
)
def test_a_wrong_limit_stops_the_start(override: str, key: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(None, [override])

    assert error.value.path == key


def test_another_listener_can_be_the_inter_broker_listener() -> None:
    config = load_config(None, [TWO, "inter.broker.listener.name=PLAINTEXT_INTERNAL"])

    assert config.inter_broker_listener == "PLAINTEXT_INTERNAL"

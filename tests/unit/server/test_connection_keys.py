from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.server.config import load_config
from odradek.server.connection_keys import look_up

TWO = "listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_INTERNAL://127.0.0.1:0"


def test_without_keys_there_are_no_limits() -> None:
    config = load_config()

    assert config.connections.properties == {}
    assert config.connections.inter_broker_listener == "PLAINTEXT"


def test_limits_of_the_file_are_texts_by_key(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(
        '"max.connections" = 100\n'
        '"max.connections.per.ip.overrides" = ["10.0.0.1:7", "::1:8"]\n'
        '"listener.name.plaintext.max.connection.creation.rate" = 5\n',
        encoding="utf-8",
    )

    properties = load_config(file).connections.properties

    assert properties == {
        "max.connections": "100",
        "max.connections.per.ip.overrides": "10.0.0.1:7,::1:8",
        "listener.name.plaintext.max.connection.creation.rate": "5",
    }


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


def test_another_listener_may_be_that_of_the_brokers() -> None:
    config = load_config(None, [TWO, "inter.broker.listener.name=PLAINTEXT_INTERNAL"])

    assert config.connections.inter_broker_listener == "PLAINTEXT_INTERNAL"


def test_a_host_is_looked_up_without_holding_up_the_loop() -> None:
    async def look() -> tuple[list[object], list[object]]:
        found: list[object] = []
        done = asyncio.Event()

        def take(addresses: Sequence[str]) -> None:
            found.extend(addresses)
            done.set()

        look_up("localhost", take)
        at_once = list(found)
        await asyncio.wait_for(done.wait(), 10)
        return at_once, found

    at_once, found = asyncio.run(look())

    assert at_once == []
    assert "127.0.0.1" in found


def test_before_there_is_a_loop_a_host_is_looked_up_at_once() -> None:
    found: list[object] = []

    look_up("localhost", found.extend)

    assert "127.0.0.1" in found


@pytest.mark.parametrize("host", ["x" * 70, "a..b"])
def test_a_host_that_has_no_address_is_no_error(host: str) -> None:
    found: list[object] = []

    look_up(host, lambda addresses: found.append(list(addresses)))

    assert found == [[]]

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from odradek.plugin.config import ConfigError
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.server.config import load_config
from odradek.server.connection_keys import displace, look_up
from odradek.server.sockets.listener import Listener, ListenerAddress
from odradek.testing.clock import MockClock

TWO = "listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_INTERNAL://127.0.0.1:0"


def test_without_keys_there_are_no_limits() -> None:
    config = load_config()

    assert config.connections.properties == {}
    assert config.connections.inter_broker_listener == "PLAINTEXT"


def test_limits_of_the_file_are_strings_by_key(tmp_path: Path) -> None:
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


def test_another_listener_can_be_the_inter_broker_listener() -> None:
    config = load_config(None, [TWO, "inter.broker.listener.name=PLAINTEXT_INTERNAL"])

    assert config.connections.inter_broker_listener == "PLAINTEXT_INTERNAL"


def test_before_there_is_a_loop_a_host_is_looked_up_at_once() -> None:
    found: list[object] = []

    look_up("localhost", found.extend)

    assert "127.0.0.1" in found


@pytest.mark.parametrize("host", ["x" * 70, "a..b"])
def test_a_host_without_an_address_is_no_error(host: str) -> None:
    found: list[object] = []

    look_up(host, lambda addresses: found.append(list(addresses)))

    assert found == [[]]


@dataclass(eq=False)
class IdleChannel:
    """A connection, with the attributes that decide which connection is closed."""

    name: str
    listener: IdleListener
    last_active_ms: int
    closing: bool = False

    def abort(self) -> None:
        self.closing = True
        self.listener.ended.append(self.name)


@dataclass(eq=False)
class IdleListener:
    """Records the closed connections."""

    quotas: ConnectionQuotas
    address: ListenerAddress
    channels: list[IdleChannel] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.quotas.add_listener(self.address.name)

    def connect(self, name: str, last_active_ms: int, closing: bool = False) -> None:
        self.quotas.enter(self.quotas.arrive(self.address.name, "10.0.0.1"))
        self.channels.append(IdleChannel(name, self, last_active_ms, closing))


def test_closing_connections_are_closed_first_then_the_longest_idle() -> None:
    clock = MockClock()
    quotas = ConnectionQuotas(clock, clock.timer)
    brokers = IdleListener(quotas, ListenerAddress("PLAINTEXT", "", 0))
    clients = IdleListener(quotas, ListenerAddress("PLAINTEXT_CLIENTS", "", 0))
    brokers.connect("broker", last_active_ms=0)
    for name, last_active_ms, closing in (("b", 2, False), ("a", 1, False), ("c", 3, True)):
        clients.connect(name, last_active_ms, closing)
    quotas.reconfigure("max.connections", "2")

    for _ in range(2):  # a connection that is already closing makes room
        displace(quotas, [cast(Listener, brokers), cast(Listener, clients)])

    assert brokers.ended == []
    assert clients.ended[:2] == ["c", "a"]
    assert [channel.closing for channel in clients.channels] == [False, True, True]

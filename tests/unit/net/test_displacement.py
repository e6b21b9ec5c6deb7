from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from odradek.net.displacement import displace
from odradek.net.listener import Listener, ListenerAddress
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.testing.clock import MockClock


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

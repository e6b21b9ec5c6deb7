"""Which records tell of the same client: its own pushes, and what gateways or hosts observed of it.

A client that pushes has a client instance id of its own, an observed one has another. What both have in
common is what the wire tells of each connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from odradek.temporality.clients import silence_ms
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import GONE_MS, ClientEntry

SLACK: Final = 2
"""Push intervals for which what was observed may go on after the last push of a client."""


@dataclass(slots=True)
class Alike:
    """The instances of one identity."""

    own: dict[bytes, Client] = field(default_factory=dict)
    """Those that push."""
    seen: dict[bytes, Client] = field(default_factory=dict)
    """Those that were observed: one for each gateway or host."""
    main: Client | None = None
    """The one of those that push that what was observed belongs to."""

    def owner(self, client: Client) -> Client | None:
        """The client that pushes and that was observed as another instance; None if that is on its own."""
        return self.main if self.main is not None and goes_on(self.main.entry, client.entry) else None


class Identities:
    """The instances by identity. Not thread-safe."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, ...], Alike] = {}

    def add(self, client: Client) -> None:
        """Take note of a push."""
        entry = client.entry
        identity = identity_of(entry)
        if client.identity != identity:
            self.remove(client)
            client.identity = identity
        alike = self.found.setdefault(identity, Alike())
        if entry.observed:
            alike.seen[entry.instance_id] = client
            return
        alike.own[entry.instance_id] = client
        if alike.main is None or not pushes_at(alike.main.entry, entry.last_ms):
            alike.main = client

    def remove(self, client: Client) -> None:
        """Forget an instance."""
        alike, instance = self.found.get(client.identity), client.entry.instance_id
        if alike is None:
            return
        alike.seen.pop(instance, None)
        alike.own.pop(instance, None)
        if alike.main is client:
            alike.main = max(alike.own.values(), key=lambda each: each.entry.last_ms, default=None)
        if not alike.own and not alike.seen:
            del self.found[client.identity]

    def face(self, client: Client) -> Client:
        """The client whose row tells of an instance: itself, unless another one is the same client."""
        entry = client.entry
        alike = self.found.get(client.identity)
        if alike is None or not entry.observed:
            return client
        owner = alike.owner(client)
        if owner is not None:
            return owner
        left = [each for each in alike.seen.values() if alike.owner(each) is None]
        return next((each for each in left if not each.entry.terminated), left[-1])

    def parts(self, client: Client) -> Iterator[Client]:
        """What else tells of the client of a row, which is nothing for most."""
        alike = self.found.get(client.identity)
        if alike is not None and alike.seen and (client.entry.observed or client is alike.main):
            yield from (
                each for each in alike.seen.values() if each is not client and self.face(each) is client
            )

    def is_alone(self, client: Client) -> bool:
        """Whether what was observed is of this client only: no other one of its identity pushes now."""
        alike = self.found.get(client.identity)
        return alike is None or all(
            each is client or not pushes_at(each.entry, client.entry.last_ms) for each in alike.own.values()
        )


def identity_of(entry: ClientEntry) -> tuple[str, ...]:
    """What a gateway or a host tells its clients by."""
    address = entry.connections[-1].address if entry.connections else ""
    return entry.principal, entry.client_id, address, entry.software, entry.version


def pushes_at(entry: ClientEntry, at_ms: int) -> bool:
    """Whether a client pushes at a time, which is not long after its last push."""
    return not entry.terminated and at_ms - entry.last_ms <= silence_ms(entry.interval_ms)


def goes_on(main: ClientEntry, entry: ClientEntry) -> bool:
    """Whether a client was not gone when another instance of its identity told something last."""
    if main.terminated:
        return entry.last_ms - main.last_ms <= SLACK * entry.interval_ms
    return entry.last_ms - main.last_ms <= max(GONE_MS, 4 * main.interval_ms)

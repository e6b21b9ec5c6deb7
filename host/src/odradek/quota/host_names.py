"""The addresses of hosts that limits name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from odradek.wire.host_address import java_host_address

log = logging.getLogger(__name__)

Lookup = Callable[[str, Callable[[Sequence[str]], None]], None]
"""Look a name up and call back with its addresses, none if it has none; now or later."""


def look_nowhere(_name: str, found: Callable[[Sequence[str]], None]) -> None:
    """The `Lookup` of those who know no names."""
    found(())


def plain_address(text: str) -> str | None:
    """An address as limits know it, without the scope; None for a name."""
    try:
        return java_host_address(text.partition("%")[0])
    except ValueError:
        return None


class HostNames:
    """Looks a name up once, without making anybody wait, and remembers what it found."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.known: dict[str, tuple[str, ...]] = {}

    def addresses(self, host: str, found: Callable[[], None]) -> tuple[str, ...]:
        """The addresses of a host; an address is its own. None for a name that is not known yet: ``found``
        is called once it is.
        """
        address = plain_address(host)
        if address is not None:
            return (address,)
        if host not in self.known:
            self.lookup(host, lambda addresses: self.learn(host, addresses, found))
        return self.known.get(host, ())

    def learn(self, host: str, addresses: Sequence[str], found: Callable[[], None]) -> None:
        """Take in what a look-up found. A name that has no address is looked up again when it is used."""
        plain = tuple(dict.fromkeys(filter(None, map(plain_address, addresses))))
        if not plain:
            log.warning("a limit has no effect: its host has no address", extra={"host": host})
            return
        self.known[host] = plain
        found()

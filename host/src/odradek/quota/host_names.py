"""Addresses of the host names in connection limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.wire.host_address import java_host_address

MAX_KNOWN = 50_000
"""The most names whose addresses are cached: one address can have any number of names."""
MAX_WANTED = 10_000
"""The most names that wait for a lookup; any further name counts as one without an address."""
Lookup = Callable[[str, Callable[[Sequence[str]], None]], None]
"""Looks up a name and calls back with its addresses, if any, now or later."""


def look_nowhere(_name: str, found: Callable[[Sequence[str]], None]) -> None:
    """A `Lookup` that finds no addresses."""
    found(())


def plain_address(text: str) -> str | None:
    """An address as limits write it, without a scope; None for a name."""
    try:
        return java_host_address(text.partition("%")[0])
    except ValueError:
        return None


class HostNames:
    """Looks up names one at a time and caches their addresses.

    No caller blocks, and a name server that does not answer occupies one thread, however many names wait.
    """

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.known: dict[str, tuple[str, ...]] = {}
        self.wanted: dict[str, list[Callable[[str], None]]] = {}
        """The callbacks of each name to be looked up, in the order of the lookups."""
        self.current: str | None = None
        self.runs = False

    def addresses(self, host: str, looked_up: Callable[[str], None]) -> tuple[str, ...]:
        """The addresses of a host; for an address, the address itself. Empty for a name that is not cached:
        then ``looked_up`` is called once the lookup is done.
        """
        address = plain_address(host)
        if address is not None:
            return (address,)
        if host not in self.known:
            self.want(host, looked_up)
        return self.known.get(host, ())

    def want(self, host: str, looked_up: Callable[[str], None]) -> None:
        """Look up a name and call ``looked_up`` once when done, now or later. Repeated calls are merged."""
        if len(self.wanted) >= MAX_WANTED and host not in self.wanted:
            looked_up(host)
            return
        waiting = self.wanted.setdefault(host, [])
        if looked_up not in waiting:
            waiting.append(looked_up)
        self.go_on()

    def forget(self, host: str, looked_up: Callable[[str], None]) -> None:
        """Cancel a callback, and the lookup if nothing else waits for it."""
        waiting = self.wanted.get(host, [])
        if looked_up in waiting:
            waiting.remove(looked_up)
        if not waiting and host != self.current:
            self.wanted.pop(host, None)

    def go_on(self) -> None:
        """Start the next lookup, unless one is under way."""
        if self.runs:
            # A lookup may call back at once, and `found` calls this again: loop instead of recursing per
            # name.
            return
        self.runs = True
        while self.wanted and self.current is None:
            self.current = next(iter(self.wanted))
            self.lookup(self.current, self.found)
        self.runs = False

    def found(self, addresses: Sequence[str]) -> None:
        """Take the result of the current lookup. A name without addresses is not cached: its next use looks
        it up again.
        """
        assert self.current is not None
        host, self.current = self.current, None
        plain = tuple(dict.fromkeys(filter(None, map(plain_address, addresses))))
        if plain:
            if len(self.known) >= MAX_KNOWN:
                del self.known[next(iter(self.known))]
            self.known[host] = plain
        for looked_up in self.wanted.pop(host):
            looked_up(host)
        self.go_on()

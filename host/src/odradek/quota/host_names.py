"""The addresses of hosts that limits name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.wire.host_address import java_host_address

MAX_KNOWN = 50_000
"""Names that are remembered. There are four thousand million for 127.0.0.1 alone."""
MAX_WANTED = 10_000
"""Names that wait; any more have no address."""
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
    """Looks names up, each once and one after the other, and remembers what it found.

    Nobody is made to wait; and a thousand names of a server that does not answer take one thread.
    """

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.known: dict[str, tuple[str, ...]] = {}
        self.wanted: dict[str, list[Callable[[str], None]]] = {}
        """Who waits for each name, in the order in which they are looked up."""
        self.current: str | None = None
        self.runs = False

    def addresses(self, host: str, looked_up: Callable[[str], None]) -> tuple[str, ...]:
        """The addresses of a host; an address is its own. None for a name that `want` has to find first."""
        address = plain_address(host)
        if address is not None:
            return (address,)
        if host not in self.known:
            self.want(host, looked_up)
        return self.known.get(host, ())

    def want(self, host: str, looked_up: Callable[[str], None]) -> None:
        """Look a name up, and call back with it once that is done: now or later, once for each function."""
        if len(self.wanted) >= MAX_WANTED and host not in self.wanted:
            looked_up(host)
            return
        waiting = self.wanted.setdefault(host, [])
        if looked_up not in waiting:
            waiting.append(looked_up)
        self.go_on()

    def forget(self, host: str, looked_up: Callable[[str], None]) -> None:
        """Nobody waits there any more."""
        waiting = self.wanted.get(host, [])
        if looked_up in waiting:
            waiting.remove(looked_up)
        if not waiting and host != self.current:
            self.wanted.pop(host, None)

    def go_on(self) -> None:
        """Look the next name up, unless one is being looked up."""
        if self.runs:
            return
        self.runs = True
        while self.wanted and self.current is None:
            self.current = next(iter(self.wanted))
            self.lookup(self.current, self.found)
        self.runs = False

    def found(self, addresses: Sequence[str]) -> None:
        """The name that was looked up has these addresses, or none. Then it is looked up again when it is
        used.
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

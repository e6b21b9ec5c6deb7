"""Several hosts looked up for one request, while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.quota.host_names import HostNames


class HostLookups:
    """Looks up one name after the other, so that a request with many of them does not take all threads.

    Args:
        hosts: Where names are looked up, and the addresses of those that have some are kept.
        names: Which.
        done: Called when all were looked up.
    """

    def __init__(self, hosts: HostNames, names: Sequence[str], done: Callable[[], None]) -> None:
        self.hosts = hosts
        self.names = list(names)
        self.done = done
        self.waits = False
        self.runs = False

    def run(self) -> None:
        """Begin, or go on after an answer."""
        self.runs = True
        while self.names and not self.waits:
            self.waits = True
            self.hosts.lookup(self.names[-1], self.found)
        self.runs = False
        if not self.names and not self.waits:
            self.done()

    def found(self, addresses: Sequence[str]) -> None:
        """One name has these addresses, or none."""
        if not self.names:  # stopped meanwhile
            return
        name = self.names.pop()
        if addresses:
            self.hosts.learn(name, addresses, lambda: None)
        self.waits = False
        if not self.runs:
            self.run()

    def stop(self) -> None:
        """Look no further: nobody waits for it."""
        self.names.clear()

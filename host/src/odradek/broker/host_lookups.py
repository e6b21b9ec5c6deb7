"""Several hosts looked up for one request, while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.quota.host_names import HostNames


class HostLookups:
    """Looks up one name after the other, so that a request with many of them leaves room for others.

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
            self.hosts.want(self.names[-1], self.looked_up)
        self.runs = False
        if not self.names and not self.waits:
            self.done()

    def looked_up(self, _name: str) -> None:
        """One name is known, or has no address."""
        self.names.pop()
        self.waits = False
        if not self.runs:
            self.run()

    def stop(self) -> None:
        """Look no further: nobody waits for it."""
        if self.names:
            self.hosts.forget(self.names[-1], self.looked_up)

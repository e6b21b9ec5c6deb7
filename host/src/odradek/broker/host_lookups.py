"""Look up several host names for one request without blocking the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from odradek.quota.host_names import HostNames


class HostLookups:
    """Looks up one name at a time, so that a request with many names leaves room for other requests.

    Args:
        hosts: Looks names up and keeps their addresses.
        names: The names to look up.
        done: Called after the last look-up.
    """

    def __init__(self, hosts: HostNames, names: Sequence[str], done: Callable[[], None]) -> None:
        self.hosts = hosts
        self.names = list(names)
        self.done = done
        self.waits = False
        self.runs = False

    def run(self) -> None:
        """Start, or continue after an answer."""
        self.runs = True
        while self.names and not self.waits:
            self.waits = True
            self.hosts.want(self.names[-1], self.looked_up)
        self.runs = False
        if not self.names and not self.waits:
            self.done()

    def looked_up(self, _name: str) -> None:
        """Continue with the next name: this one has been looked up."""
        self.names.pop()
        self.waits = False
        if not self.runs:
            self.run()

    def stop(self) -> None:
        """Stop looking up: the request is gone."""
        if self.names:
            self.hosts.forget(self.names[-1], self.looked_up)

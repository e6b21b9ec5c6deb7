"""The brokers of a cluster, asked again and again from a program that must not wait for them.

A request blocks: it is a step for a thread (see `odradek.waiting.steps`). A broker that does not answer holds
up the others once, then it is left alone for a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from odradek.client.address import Address
from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, RequestFailed, UnsupportedVersion
from odradek.client.resources import Node
from odradek.plugin.config import ConfigError
from odradek.waiting.clock import Clock
from odradek.wire.messages.metadata import MetadataResponse

log = logging.getLogger(__name__)

SILENT_MS: Final = 10_000
"""A broker that did not answer is not asked again for so long."""
R = TypeVar("R")


def warn(problem: str) -> None:
    """Log a problem."""
    log.warning("the lag of a cluster is not known", extra={"problem": problem})


class Silence(NamedTuple):
    """Why a broker does not answer a request."""

    reason: str
    lasts: bool
    """The next request is likely to find the same."""


class AskedBrokers:
    """The brokers.

    Args:
        connect: Makes a client; called again when no broker has answered.
        clock: The time.
        say: Called with each new problem.
    """

    def __init__(
        self, connect: Callable[[], AdminClient], clock: Clock, say: Callable[[str], None] = warn
    ) -> None:
        self.connect = connect
        self.say = say
        self.clock = clock
        self.admin: AdminClient | None = None
        """Used on the thread of the requests only."""
        self.nodes: dict[int, Node] = {}
        self.silent_until_ms: dict[int, int] = {}
        self.outdated = True
        """The leaders must be asked for."""
        self.stopped = False
        self.problems: dict[str, str] = {}
        """Of each subject, such as a broker, as of the last request."""

    def client(self) -> AdminClient:
        if self.stopped:
            raise ClientError("no more requests")
        if self.admin is None:
            self.admin = self.connect()
        return self.admin

    def close(self) -> None:
        """Close the connections. Call it on the thread of the requests."""
        admin, self.admin = self.admin, None
        if admin is not None:
            admin.close()

    def interrupt(self) -> None:
        """Let a request that waits fail soon, and ask no more. Call from any thread."""
        self.stopped, admin = True, self.admin
        for connection in list(admin.cluster.connections.values()) if admin is not None else ():
            connection.channel.interrupt()

    def metadata(self) -> Generator[Any, Any, MetadataResponse | None]:
        """Ask for all brokers, topics and leaders; None if no broker answers."""
        found: MetadataResponse | Silence = yield self.ask_for_metadata
        if isinstance(found, Silence):
            self.tell("", found.reason)
            return None
        self.well("")
        self.outdated = False
        self.nodes = {
            each.node_id: Node(each.node_id, Address(each.host, each.port)) for each in found.brokers
        }
        return found

    def ask_for_metadata(self) -> MetadataResponse | Silence:
        try:
            return self.client().cluster.metadata(None)
        except (ClientError, ConfigError) as error:
            self.close()
            return Silence(str(error), lasts=True)

    def answer(self, node_id: int, request: Callable[[Connection], R]) -> Generator[Any, Any, R | None]:
        """Ask a broker; None if it does not answer, now or a moment ago."""
        node = self.nodes.get(node_id)
        if node is None or self.silent_until_ms.get(node_id, 0) > self.clock.monotonic_ms():
            return None
        found: R | Silence = yield partial(self.ask, node, request)
        if not isinstance(found, Silence):
            self.well(str(node.address))
            return found
        self.tell(str(node.address), found.reason)
        self.outdated = True
        if found.lasts:
            self.silent_until_ms[node_id] = self.clock.monotonic_ms() + SILENT_MS
        return None

    def ask(self, node: Node, request: Callable[[Connection], R]) -> R | Silence:
        """Ask a broker; return its answer, or why there is none. One that throttles has a pause."""
        try:
            connection = self.client().cluster.connection(node.address)
            found = request(connection)
            if connection.throttle_ms:
                self.silent_until_ms[node.id] = self.clock.monotonic_ms() + connection.throttle_ms
            return found
        except (RequestFailed, UnsupportedVersion) as error:
            return Silence(str(error), lasts=False)
        except (ClientError, ConfigError) as error:
            return Silence(str(error), lasts=True)

    def tell(self, subject: str, problem: str) -> None:
        """Say that a subject has a problem, unless it has had one since it was well last."""
        if subject not in self.problems:
            self.say(problem)
        self.problems[subject] = problem

    def well(self, subject: str) -> None:
        """A subject has no problem any more."""
        self.problems.pop(subject, None)

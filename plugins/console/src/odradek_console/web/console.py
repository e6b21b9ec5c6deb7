"""The console behind the pages: the view of the clients, the cluster, and bounds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Self

from starlette.requests import Request

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import ClusterWatch, Observed
from odradek_console.alarms.sender import AlarmCounts, AlarmSender
from odradek_console.engine.subscription_history import SubscriptionHistory
from odradek_console.reach import Reach
from odradek_console.reading.cluster_view import ClusterView
from odradek_console.reading.leases import Leases
from odradek_console.reading.older_points import OlderPoints
from odradek_console.reading.programs import Programs
from odradek_console.view import View
from odradek_console.web.access import Access, loopback_access
from odradek_console.web.audit import Audit
from odradek_console.web.server_settings import ServerCounts
from odradek_console.web.shared import Shared

STREAM_INTERVAL_S: Final = 1.0
WATCH_INTERVAL_MS: Final = 15_000
"""Between two looks at the subscriptions."""


@dataclass(slots=True, kw_only=True)
class Console:
    """Everything that a page needs. Pages run in threads and share it."""

    view: View
    cluster: ClusterView
    history: SubscriptionHistory
    """Changes of subscriptions, which `watch` finds."""
    watch: ClusterWatch
    leases: Leases
    """Subscriptions that were set on a client's page."""
    connect: Callable[[], AdminClient]
    """Makes a client of the cluster, for acts."""
    cluster_name: str
    """The bootstrap servers, as the headline names them."""
    access: Access
    """The users and their roles."""
    tables: OlderPoints | None = None
    """The tables of odradek-spark, for points that are older than the memory."""
    alarms: AlarmSender | None = None
    """Sends alarms, if there are destinations."""
    programs: Programs = field(default_factory=lambda: Programs(()))
    """Gateways and hosts whose metrics are read."""
    grafana: str = ""
    """The URL of a Grafana with the dashboards; empty without one."""
    reaches: Shared[list[Reach]] = field(default_factory=Shared)
    """The clients that each subscription selects."""
    stream_interval_s: float = STREAM_INTERVAL_S
    """The shortest time between two events of a stream."""
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    stopping: threading.Event = field(default_factory=threading.Event)
    """Set when the server stops: event streams end."""
    server: ServerCounts = field(default_factory=ServerCounts)

    def __enter__(self) -> Self:
        self.view.reader.start()
        self.watch.start()
        self.programs.start()
        if self.alarms is not None:
            self.alarms.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.alarms is not None:
            self.alarms.stop()
        self.watch.stop()
        self.programs.stop()
        self.view.close()

    @property
    def audit(self) -> Audit:
        """The audit log: each act of a user has a line."""
        return self.access.audit

    @property
    def counts(self) -> dict[str, int]:
        """Streams, sessions and alarms, and what was refused."""
        alarms = self.alarms.counts if self.alarms is not None else AlarmCounts()
        return self.access.figures() | self.server.to_json() | alarms.to_json()


def make_console(
    view: View,
    connect: Callable[[], AdminClient],
    cluster_name: str,
    access: Access | None = None,
    tables: OlderPoints | None = None,
) -> Console:
    """A console that does not read yet: it is a context manager.

    Args:
        view: The view of the clients.
        connect: Makes a client of the cluster.
        cluster_name: The bootstrap servers.
        access: Who may look and act; None: everybody on this machine may look.
        tables: The tables of odradek-spark.
    """
    history, leases = SubscriptionHistory(), Leases()

    def observed(found: Observed) -> None:
        if found.subscriptions is not None:
            history.observe(found.subscriptions, view.now_ms())
            leases.take_back(connect, view.now_ms() / 1000)

    return Console(
        view=view,
        cluster=ClusterView(connect, view.settings.topic),
        history=history,
        leases=leases,
        watch=ClusterWatch(connect, WATCH_INTERVAL_MS, observed),
        connect=connect,
        cluster_name=cluster_name,
        access=access or loopback_access(),
        tables=tables,
    )


def console_of(request: Request) -> Console:
    found: Console = request.app.state.console
    return found

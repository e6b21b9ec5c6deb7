"""The requests that a host received, for a test to inspect."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from odradek.plugin.context import RequestContext
from odradek.testing.arrivals import Arrivals, ArrivedList
from odradek.testing.fault import Drop, Fault, meant
from odradek.wire.error_code import ErrorCode

__tracebackhide__ = True  # pytest shows where the test waits, not these frames

KEPT = 10_000
"""Number of requests that are kept; the oldest are dropped."""


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """One request and its outcome."""

    api: str
    """Kafka's name of the API, such as ``PushTelemetry``."""
    version: int
    client_id: str | None
    context: RequestContext
    """The connection with the client's name and version, and the time of receipt."""
    request_bytes: int
    """Size of header and body."""
    response_bytes: int = 0
    """Size of header and body of the response; 0 before there is one."""
    answered: bool = False
    """True once there is a response or the connection was closed instead."""
    error: ErrorCode | None = None
    """The error of the whole response; None if there is no response or each item has its own error."""
    fault: Fault | None = None
    """The fault that hit the request; None if none did."""

    @property
    def drops(self) -> Drop | None:
        """When the fault closes the connection instead of a response; None if it does not."""
        return None if self.fault is None else self.fault.drop

    def __str__(self) -> str:
        outcome = "not answered yet" if not self.answered else "answered"
        if self.error is not None:
            outcome = self.error.name
        return f"{self.api} v{self.version} of {self.client_id}: {outcome}"


class RequestLog:
    """The newest requests, oldest first. Any thread may iterate over it and call ``len``.

    ``apis`` are those that the host serves. Any other name in a test is a mistake.
    """

    def __init__(self, arrivals: Arrivals, apis: Collection[str]) -> None:
        self.arrivals = arrivals
        self.apis = apis
        self.kept: deque[Request] = deque(maxlen=KEPT)
        self.forgotten = False
        """Whether earlier requests were dropped."""

    def add(self, request: Request) -> None:
        """Add a request that arrived."""
        with self.arrivals.condition:
            self.kept.append(request)
            self.arrivals.notify()

    def forget(self) -> None:
        """Drop all requests."""
        with self.arrivals.condition:
            self.kept.clear()
            self.forgotten = True

    def __iter__(self) -> Iterator[Request]:
        with self.arrivals.condition:
            return iter(list(self.kept))

    def __len__(self) -> int:
        return len(self.kept)

    def refuse_unknown(self, api: str) -> None:
        """Check that the host serves an API.

        Raises:
            ValueError: It does not.
        """
        if api not in self.apis:
            raise ValueError(f"the host has no API {api!r}{meant(api, self.apis)}")

    def of(self, api: str | None = None, *, client_id: str | None = None) -> list[Request]:
        """The requests of an API, of a client, or both. The client id may be a pattern with ``*``.

        Raises:
            ValueError: The host has no such API.
        """
        if api is not None:
            self.refuse_unknown(api)
        return [
            request
            for request in self
            if (api is None or request.api == api)
            and (client_id is None or fnmatchcase(request.client_id or "", client_id))
        ]

    def wait_for(
        self, api: str, *, client_id: str | None = None, count: int = 1, timeout_s: float = 5
    ) -> ArrivedList[Request]:
        """Wait until ``count`` requests of an API are answered, and return the answered ones.

        Await it in a coroutine.

        Raises:
            NothingCame: There are fewer until the timeout.
            ValueError: The host has no such API.
        """

        self.refuse_unknown(api)

        def answered() -> ArrivedList[Request] | None:
            found = ArrivedList(request for request in self.of(api, client_id=client_id) if request.answered)
            return found if len(found) >= count else None

        wanted = f"{count} {api} of client {client_id or '(any)'}"
        return self.arrivals.wait_for(answered, timeout_s, wanted)

    def summary(self) -> Iterator[str]:
        """Yield one line per client: its software and the number of its requests by API."""
        clients: dict[str | None, tuple[str, Counter[str]]] = {}
        for request in self:
            connection = request.context.connection
            software = f"{connection.client_software_name} {connection.client_software_version}"
            known = clients.get(request.client_id, (software, Counter()))[1]
            known[request.api] += 1
            clients[request.client_id] = software, known
        for client_id, (software, apis) in clients.items():
            yield f"{client_id} ({software}): {', '.join(f'{api} {count}' for api, count in apis.items())}"

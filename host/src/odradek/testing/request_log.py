"""All requests that a host got, for a test to look at."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from odradek.plugin.context import RequestContext
from odradek.testing.arrivals import Arrivals
from odradek.testing.fault import Drop, Fault, meant
from odradek.wire.error_code import ErrorCode

KEPT = 10_000
"""The newest so many requests."""


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """One request, and what became of it."""

    api: str
    """As Kafka calls it: ``PushTelemetry``."""
    version: int
    client_id: str | None
    context: RequestContext
    """The connection, with the name and version of the client, and when it was received."""
    request_bytes: int
    """Header and body."""
    response_bytes: int = 0
    """The same of the response; 0 while there is none."""
    answered: bool = False
    """True also where the answer is that the connection is closed."""
    error: ErrorCode | None = None
    """The error of the response as a whole; None without an answer, and where each item has its own."""
    fault: Fault | None = None
    """Which one hit it."""

    @property
    def drops(self) -> Drop | None:
        """Whether the connection is closed in place of an answer."""
        return None if self.fault is None else self.fault.drop

    def __str__(self) -> str:
        outcome = "not answered yet" if not self.answered else "answered"
        if self.error is not None:
            outcome = self.error.name
        return f"{self.api} v{self.version} of {self.client_id}: {outcome}"


class RequestLog:
    """The newest requests, oldest first. May be iterated and counted in any thread."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        self.apis: Collection[str] = ()
        """What the host serves; an API that is none of them is a slip of the pen."""
        self.kept: deque[Request] = deque(maxlen=KEPT)

    def add(self, request: Request) -> None:
        """A request came."""
        with self.arrivals.condition:
            self.kept.append(request)
            self.arrivals.condition.notify_all()

    def __iter__(self) -> Iterator[Request]:
        with self.arrivals.condition:
            return iter(list(self.kept))

    def __len__(self) -> int:
        return len(self.kept)

    def refuse_unknown(self, api: str) -> None:
        """The host has such an API.

        Raises:
            ValueError: It has not.
        """
        if api not in self.apis:
            raise ValueError(f"the host has no API {api!r}{meant(api, self.apis)}")

    def of(self, api: str | None = None, *, client_id: str | None = None) -> list[Request]:
        """Requests of an API, of a client, or of both; the client id may be a pattern with ``*``.

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
    ) -> list[Request]:
        """The requests of an API, as soon as ``count`` of them are answered.

        Raises:
            NothingCame: There are fewer, in time.
            ValueError: The host has no such API.
        """

        def answered() -> list[Request] | None:
            found = [request for request in self.of(api, client_id=client_id) if request.answered]
            return found if len(found) >= count else None

        wanted = f"{count} {api} of client {client_id or '(any)'}"
        return self.arrivals.wait_for(answered, timeout_s, wanted)

    def summary(self) -> Iterator[str]:
        """One line per client: what it runs, what it asked."""
        clients: dict[str | None, tuple[str, Counter[str]]] = {}
        for request in self:
            connection = request.context.connection
            software = f"{connection.client_software_name} {connection.client_software_version}"
            known = clients.get(request.client_id, (software, Counter()))[1]
            known[request.api] += 1
            clients[request.client_id] = software, known
        for client_id, (software, apis) in clients.items():
            yield f"{client_id} ({software}): {', '.join(f'{api} {count}' for api, count in apis.items())}"

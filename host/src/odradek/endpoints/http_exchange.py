"""One HTTP request that blocks: for threads and commands, and without aiohttp.

It ends at its time limit however slowly an endpoint answers, reads no more than its bound, and follows no
redirect: most would turn a POST into a GET without its body. Proxies are those of the environment.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Mapping
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection, InvalidURL
from typing import Any, Final
from urllib.error import URLError
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, UnknownHandler

from odradek.endpoints.http_answer import HttpAnswer
from odradek.endpoints.tls_context import default_context
from odradek.waiting.clock import SystemClock

PIECE_BYTES: Final = 1 << 14
"""As in a record of TLS: the time limit is looked at before each piece."""


class NoAnswer(OSError):
    """An endpoint is unreachable, is too slow, or does not speak HTTP; the message says which."""


class Deadline:
    """The end of one request."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.clock = SystemClock()
        self.end_ms = self.clock.monotonic_ms() + round(timeout_s * 1000)

    def limit(self, sock: Any) -> None:
        """Let the next call of a socket end in time.

        Raises:
            TimeoutError: The time is over.
        """
        left_ms = self.end_ms - self.clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError("timed out")
        sock.settimeout(left_ms / 1000)


class EndingSocket:
    """The methods of a socket that `http.client` uses. All calls together end at the deadline."""

    def __init__(self, sock: Any, deadline: Deadline) -> None:
        self.sock = sock
        self.deadline = deadline

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), PIECE_BYTES):
            self.deadline.limit(self.sock)
            self.sock.sendall(data[start : start + PIECE_BYTES])

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(EndingReader(self.sock.makefile(mode, buffering=0), self))

    def close(self) -> None:
        self.sock.close()


class EndingReader(io.RawIOBase):
    """Reads from a socket until the deadline."""

    def __init__(self, raw: io.RawIOBase, ending: EndingSocket) -> None:
        super().__init__()
        self.raw = raw
        self.ending = ending

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.ending.deadline.limit(self.ending.sock)
        return self.raw.readinto(buffer)

    def close(self) -> None:
        self.raw.close()
        super().close()


class EndingConnection(HTTPConnection):
    """A connection whose time limit is that of the whole request, not that of each call of the socket."""

    def __init__(self, *place: Any, **options: Any) -> None:
        super().__init__(*place, **options)
        self.deadline = Deadline(options["timeout"])

    def connect(self) -> None:
        super().connect()
        self.sock: Any = EndingSocket(self.sock, self.deadline)


class EndingTlsConnection(EndingConnection, HTTPSConnection):
    """The same over TLS."""


class Http(HTTPHandler):
    def http_open(self, request: Request) -> Any:
        return self.do_open(EndingConnection, request)


class Https(HTTPSHandler):
    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self.tls = context

    def https_open(self, request: Request) -> Any:
        # Creating a context reads the machine's CAs, which a request without TLS does not need.
        context = self.tls or default_context()
        return self.do_open(partial(EndingTlsConnection, context=context), request)


def exchange(
    url: str,
    *,
    timeout_s: float,
    max_bytes: int,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> HttpAnswer:
    """POST a body, or GET without one. Blocks.

    Args:
        url: An http or https URL; whoever calls has checked it.
        timeout_s: Limit of the whole exchange, without the lookup of the name.
        max_bytes: Limit of the answer's body. Of a longer one, one byte more is returned.
        body: The body of a POST.
        headers: Headers of the request.
        tls: For https; None trusts the machine's CAs.

    Returns:
        The answer, whatever its status.

    Raises:
        NoAnswer: There is none, or only a part of one.
    """
    opener = OpenerDirector()  # without handlers of redirects and of other schemes
    for handler in (ProxyHandler(), UnknownHandler(), Http(), Https(tls)):
        opener.add_handler(handler)
    request = Request(url, body, dict(headers or {}))  # noqa: S310  no handler opens another scheme
    try:
        with opener.open(request, timeout=timeout_s) as response:
            found = bounded_body(response, max_bytes)
            return HttpAnswer(response.status, response.headers, response.headers.get_content_type(), found)
    except InvalidURL as error:  # its message has the path, which may hold a secret
        raise NoAnswer("the URL has a blank or a control character") from error
    except (OSError, HTTPException, UnicodeError) as error:  # UnicodeError: a host name that is none
        cause = error.reason if isinstance(error, URLError) else error
        if isinstance(cause, TimeoutError):
            raise NoAnswer(f"no answer within {timeout_s:g} s") from error
        raise NoAnswer(str(cause) or type(cause).__name__) from error


def bounded_body(response: Any, max_bytes: int) -> bytes:
    """The body, or its first ``max_bytes + 1`` bytes."""
    found = bytes(response.read(max_bytes + 1))
    if len(found) <= max_bytes and response.length:
        raise OSError(f"the answer broke off, {response.length} bytes are missing")
    return found

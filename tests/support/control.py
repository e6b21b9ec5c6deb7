"""A client of the control port of ``odradek serve --ephemeral``."""

from __future__ import annotations

import http.client
import json
from typing import Any

from support.hosts import ServeProcess


class Control:
    """A client of the control port.

    Args:
        serve: The process.
        token: Its bearer token; None if it has none.
    """

    def __init__(self, serve: ServeProcess, token: str | None = None) -> None:
        self.address = serve.ready.rpartition("control=http://")[2]
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def send(self, path: str, body: str = "{}", method: str = "POST", **headers: str) -> tuple[int, Any]:
        """The status and the answer."""
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, f"/{path}", body, {**self.headers, **headers})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def call(self, path: str, **given: object) -> Any:
        """The result of an operation that must succeed."""
        status, result = self.send(path, json.dumps(given))
        assert status == 200, result
        return result

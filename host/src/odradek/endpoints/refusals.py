"""Refusals of endpoints: an operator must mend wrong credentials and wrong addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from odradek.endpoints.credentials import Credentials
from odradek.plugin.protocols import Retry

MAX_MESSAGE_LENGTH: Final = 180
"""Limit of the endpoint's message, which becomes part of a reason and so of a metric's label."""

Answer = TypeVar("Answer")


class Unauthorized(Retry):
    """The endpoint refused the credentials: 401, 403, UNAUTHENTICATED, PERMISSION_DENIED.

    Specifications call this final. Here it is retried: the push is not at fault, and an operator can fix the
    credentials.
    """


class Misdirected(Retry):
    """The address is not that of the endpoint: a redirect, an unknown path, or an answer of another protocol.

    Specifications call most of these final. Here they are retried: the push is not at fault, and an operator
    can correct the address.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; correct the endpoint in the plugin's table")


async def with_credentials(
    credentials: Credentials, send: Callable[[Mapping[str, str]], Awaitable[Answer]]
) -> Answer:
    """Send a request. If the endpoint refuses the credentials and the files have new ones, send it again.

    Args:
        credentials: The headers.
        send: Sends the request with these headers.

    Raises:
        Unauthorized: The endpoint refuses the credentials of now.
    """
    used = credentials.request_headers()
    try:
        return await send(used)
    except Unauthorized:
        renewed = credentials.reread()
        if renewed == used:
            raise
    return await send(renewed)


def titled(title: str, message: str) -> str:
    """The title, and one line of the endpoint's message."""
    text = " ".join(message.split())[:MAX_MESSAGE_LENGTH]
    return f"{title}: {text}" if text else title

"""A refusal that the client can be told."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode


class ApiError(Exception):
    """Ends a request, or one item of it, with a code of the protocol.

    Args:
        code: What the response says.
        message: A lower-case clause for people, where the response has room for one.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message

"""A refusal with an error code for the client."""

from __future__ import annotations

from typing import Any, Self

from odradek.wire.error_code import ErrorCode


class ApiError(Exception):
    """Ends a request, or one item of it, with an error code of the protocol.

    Args:
        code: The error code of the response.
        message: A lower-case clause for people, for responses that have a message field.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message

    def kept(self) -> Self:
        """The same error without the frames that it came through. Call it before an error is stored: the
        frames hold the request, and if one of them holds the error, only a full collection frees them.
        """
        self.__context__ = None
        return self.with_traceback(None)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message)

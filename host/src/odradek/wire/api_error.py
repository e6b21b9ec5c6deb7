"""A refusal with an error code for the client."""

from __future__ import annotations

from typing import Any, ClassVar

from odradek.waiting.kept_error import KeptError
from odradek.wire.error_code import ErrorCode


class ApiError(KeptError):
    """Ends a request, or one item of it, with an error code of the protocol.

    Args:
        code: The error code of the response.
        message: A lower-case clause for people, for responses that have a message field.
    """

    is_answer: ClassVar[bool] = True

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message)

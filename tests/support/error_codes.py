"""The error codes of calls."""

from __future__ import annotations

from collections.abc import Callable

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def code_of(action: Callable[[], object]) -> ErrorCode:
    """The error code of a call that may raise; NONE if it does not."""
    try:
        action()
    except ApiError as error:
        return error.code
    return ErrorCode.NONE

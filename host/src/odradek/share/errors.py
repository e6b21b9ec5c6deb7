"""Refused acknowledgements."""

from __future__ import annotations

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


def invalid_request(message: str) -> ApiError:
    """The request contradicts itself, or names records that nobody ever got."""
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def invalid_state(first: int, last: int) -> ApiError:
    """The member does not hold these records, or no longer."""
    return ApiError(ErrorCode.INVALID_RECORD_STATE, f"offsets {first} to {last} are not held by the member")

"""Errors of transactions as older clients know them."""

from __future__ import annotations

from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

GENERIC_ERROR_VERSION = 11
"""Of Produce: TRANSACTION_ABORTABLE is understood (KIP-890)."""
IMPLICIT_VERSION = 12
"""Of Produce: a batch brings its partition into the transaction (KIP-890, part 2)."""


def older_code(error: ApiError, context: RequestContext, fenced_version: int) -> ApiError:
    """The same error; INVALID_PRODUCER_EPOCH for PRODUCER_FENCED before the version that knows it."""
    if error.code is ErrorCode.PRODUCER_FENCED and context.api_version < fenced_version:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error


def verification_error(error: ApiError, *, implicit: bool, generic_error: bool) -> ApiError:
    """Why a partition could not be used in a transaction, for who writes to it.

    After org.apache.kafka.server.transaction.AddPartitionsToTxnManager.

    Args:
        error: What the coordinator said.
        implicit: The partition was to be added; else it had to be there.
        generic_error: The client knows TRANSACTION_ABORTABLE.
    """
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    if code is ErrorCode.TRANSACTION_ABORTABLE and not generic_error:
        return ApiError(ErrorCode.INVALID_TXN_STATE, error.message)
    if code in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE) and not implicit:
        return ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, error.message)  # retriable, and known to every client
    return error

"""Transaction errors, translated for older clients."""

from __future__ import annotations

from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

GENERIC_ERROR_VERSION = 11
"""The Produce version from which clients know TRANSACTION_ABORTABLE (KIP-890)."""
IMPLICIT_VERSION = 12
"""The Produce version from which a batch adds its partition to the transaction (KIP-890, part 2)."""


def older_code(error: ApiError, context: RequestContext, fenced_version: int) -> ApiError:
    """The error; INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED below the version that knows it."""
    if error.code is ErrorCode.PRODUCER_FENCED and context.api_version < fenced_version:
        return ApiError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error


def verification_error(error: ApiError, *, implicit: bool, generic_error: bool) -> ApiError:
    """Translate the coordinator's refusal of a partition into an error for the producer.

    After org.apache.kafka.server.transaction.AddPartitionsToTxnManager.

    Args:
        error: The coordinator's refusal.
        implicit: The batch adds its partition; otherwise the partition must already be in the transaction.
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

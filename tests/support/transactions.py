"""What tests ask of a transaction coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

TransactionHost = Any  # of tests/unit/transaction/conftest.py, which cannot be imported


def code_of(action: Callable[[], object]) -> ErrorCode:
    """The error code of a call; NONE if it succeeds."""
    try:
        action()
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def state_of(host: TransactionHost, transactional_id: str = "tx") -> TransactionState:
    state: TransactionState = host.coordinator.transaction(transactional_id).state
    return state


def end(
    host: TransactionHost, producer: ProducerIdAndEpoch, committed: bool, version_2: bool
) -> ProducerIdAndEpoch:
    ended: ProducerIdAndEpoch = host.coordinator.end("tx", producer, committed=committed, version_2=version_2)
    return ended

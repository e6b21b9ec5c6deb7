"""Helpers for tests of the transaction coordinator."""

from __future__ import annotations

from typing import Any

from odradek.transaction.transaction_metadata import ProducerIdAndEpoch
from odradek.transaction.transaction_state import TransactionState

TransactionHost = Any  # of tests/unit/transaction/conftest.py, which cannot be imported


def state_of(host: TransactionHost, transactional_id: str = "tx") -> TransactionState:
    state: TransactionState = host.coordinator.transaction(transactional_id).state
    return state


def end(
    host: TransactionHost, producer: ProducerIdAndEpoch, committed: bool, version_2: bool
) -> ProducerIdAndEpoch:
    ended: ProducerIdAndEpoch = host.coordinator.end("tx", producer, committed=committed, version_2=version_2)
    return ended

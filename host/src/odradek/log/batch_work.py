"""The work of validating large batches, for another process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from odradek.log.log_config import LogConfig
from odradek.log.log_validator import (
    DECOMPRESSED_BYTES,
    STAMPED_BYTES,
    OpeningBudget,
    PreparedBatch,
    RecordCheck,
    prepared,
)
from odradek.wire.api_error import ApiError
from odradek.wire.record_batch import parse_header

Prepared = PreparedBatch | ApiError


@dataclass(frozen=True, slots=True)
class BatchWork:
    """One batch that has passed ``check_batch``."""

    data: bytes
    config: LogConfig
    now_ms: int
    check: RecordCheck | None = None
    batch_bytes: int = DECOMPRESSED_BYTES

    def __call__(self) -> Prepared:
        """The prepared batch, or its refusal. An unchanged body is left out, because the host has it."""
        header = parse_header(self.data)
        try:
            found = prepared(
                memoryview(self.data),
                header,
                self.config,
                self.now_ms,
                OpeningBudget.unlimited(self.batch_bytes),
                self.check,
            )
        except ApiError as error:
            return error.kept()
        return found if isinstance(found.body, bytes) else found._replace(body=b"")

    def completed(self, outcome: Prepared) -> Prepared:
        """The outcome with the body that was left out."""
        if isinstance(outcome, ApiError) or outcome.body:
            return outcome
        return outcome._replace(body=memoryview(self.data)[STAMPED_BYTES:])


@dataclass(frozen=True, slots=True)
class BatchesWork:
    """Several batches, so that small ones do not each take a round trip."""

    works: tuple[BatchWork, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes sent to the other process."""
        return sum(len(each.data) for each in self.works)

    def __call__(self) -> list[Prepared]:
        """The outcome of each batch."""
        return [work() for work in self.works]


BatchOffload = Callable[[BatchesWork, Callable[[Any], None]], None]
"""An `Offload` of batches."""

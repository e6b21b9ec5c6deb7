"""The payload of a push: decompressed within bounds, checked to be OTLP, labeled.

Pure functions of their arguments: they may run in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.otlp.labeled_payload import (
    RESOURCE_METRICS,
    PayloadLimits,
    bounded_count,
    labeled_entries,
    labeled_scope,
    too_many_entries,
)
from odradek.otlp.labels import EncodedLabels
from odradek.otlp.protobuf_bytes import NotOtlp
from odradek.otlp.protobuf_fields import FieldBudget, fields
from odradek.telemetry.message_count import check_messages
from odradek.telemetry.otlp_schema import validate
from odradek.wire.compression import decompress

COUNT_FIRST_BYTES: Final = 1 << 20
"""Above this size the entries are counted on the bytes before protobuf takes memory for each: 32 bytes, so at
most 16 MiB for the empty entries of a smaller payload. To count takes three times as long as all the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadWork:
    """The work on a payload, for another process."""

    codec: int
    data: bytes
    labels: EncodedLabels | None
    limits: PayloadLimits

    @property
    def size_bytes(self) -> int:
        """Bytes sent to the other process."""
        return len(self.data)

    def __call__(self) -> bytes:
        """The payload for the plugins.

        Raises:
            TooLarge, CorruptData, NotOtlp: As `open_payload`.
        """
        return open_payload(self.codec, self.data, self.labels, self.limits)


PayloadOffload = Callable[[PayloadWork, Callable[[bytes | Exception], None]], None]
"""An `Offload` of payloads."""


def open_payload(codec: int, data: bytes, labels: EncodedLabels | None, limits: PayloadLimits) -> bytes:
    """The received payload, made ready for the plugins.

    Raises:
        TooLarge: More bytes, entries, resources or fields (`TooMuchWork`) than allowed.
        CorruptData: Not the bytes of the codec.
        NotOtlp: Not a MetricsData.
    """
    return label(decompress(codec, data, limits.max_bytes), labels, limits)


def label(data: bytes, labels: EncodedLabels | None, limits: PayloadLimits) -> bytes:
    """A MetricsData in which every Resource carries the labels; unchanged without labels.

    ResourceMetrics with equal Resource and schema URL become one. Unknown fields beside them are dropped.

    Raises:
        TooLarge, NotOtlp: As `open_payload`.
    """
    if labels is None and not limits.require_otlp:
        return data
    try:
        if len(data) > COUNT_FIRST_BYTES:
            count_bytewise(data, limits)
            check_messages(data)
        if labels is None:
            # An entry takes two bytes or more: most payloads cannot hold too many.
            if len(data) > 2 * limits.max_resource_metrics:
                bounded_count(data, limits)
            validate(data)
            return data
        checked = data
        whole = labeled_scope(data, labels, limits)
        if whole is None:
            whole = checked = labeled_entries(data, labels, limits)
        validate(checked)
    except NotOtlp:
        if limits.require_otlp:
            raise
        return data
    return whole


def count_bytewise(data: bytes, limits: PayloadLimits) -> None:
    """Raise if there are too many entries, after reading no more than are allowed."""
    entries = 0
    for tag, _, _, _ in fields(data, FieldBudget(limits.max_fields)):
        if tag == RESOURCE_METRICS:
            entries += 1
            if entries > limits.max_resource_metrics:
                raise too_many_entries(limits)

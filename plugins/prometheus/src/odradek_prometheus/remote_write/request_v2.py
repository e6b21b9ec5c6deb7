"""A request of remote write 2.0 (``io.prometheus.write.v2.Request``), written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odradek_prometheus.families import FamilyType
from odradek_prometheus.remote_write.histogram_bytes import histogram_bytes, stale_histogram
from odradek_prometheus.remote_write.protobuf import delimited, tag, varint
from odradek_prometheus.remote_write.sample import (
    NAME_LABEL,
    STALE_BITS,
    ZERO_BITS,
    Sample,
    labels_before_name,
)

SYMBOLS, SERIES = 4, 5
LABELS, SAMPLES, HISTOGRAMS, METADATA = 1, 2, 3, 5
TYPES: Final = {
    FamilyType.COUNTER: 1,
    FamilyType.GAUGE: 2,
    FamilyType.HISTOGRAM: 3,
    FamilyType.EXPONENTIAL: 3,
}
VALUE_TAG, TIME_TAG, START_TAG = tag(1, 1), tag(2, 0), tag(3, 0)
SERIES_TAG, SAMPLE_TAG, REFS_TAG = tag(SERIES, 2), tag(SAMPLES, 2), tag(LABELS, 2)


class Symbols:
    """The texts of a request, each once; the first is empty."""

    def __init__(self) -> None:
        self.refs: dict[str, bytes] = {"": varint(0)}
        """The encoded index of each text."""

    def ref(self, text: str) -> bytes:
        found = self.refs.get(text)
        if found is None:
            found = self.refs[text] = varint(len(self.refs))
        return found

    def encoded(self) -> bytes:
        return b"".join([delimited(SYMBOLS, text.encode()) for text in self.refs])


def request_v2(samples: Sequence[Sample]) -> bytes:
    """The body of a request, uncompressed."""
    symbols = Symbols()
    ref = symbols.ref
    name_label = ref(NAME_LABEL)
    known: dict[tuple[str, str], bytes] = {}
    metadata: dict[int, bytes] = {}
    parts: list[bytes] = []
    for sample in samples:
        refs: list[bytes] = []
        for label in sample.labels:
            found = known.get(label)
            if found is None:
                found = known[label] = ref(label[0]) + ref(label[1])
            refs.append(found)
        refs.insert(labels_before_name(sample.labels), name_label + ref(sample.name))
        family = sample.family
        described = metadata.get(id(family))
        if described is None:
            described = metadata[id(family)] = delimited(
                METADATA,
                tag(1, 0)
                + varint(TYPES[family.type])
                + (tag(3, 0) + ref(family.help) if family.help else b"")
                + (tag(4, 0) + ref(family.unit) if family.unit else b""),
            )
        packed = b"".join(refs)
        body = b"".join((REFS_TAG, varint(len(packed)), packed, values(sample), described))
        parts += (SERIES_TAG, varint(len(body)), body)
    return symbols.encoded() + b"".join(parts)


def values(sample: Sample) -> bytes:
    """The sample or histogram of a series, after its zero."""
    if sample.histogram is not None:
        return delimited(HISTOGRAMS, histogram_bytes(sample.histogram, sample.time_ms, sample.start_ms))
    if sample.family.type is FamilyType.EXPONENTIAL:
        return delimited(HISTOGRAMS, stale_histogram(STALE_BITS, sample.time_ms))
    value = VALUE_TAG + sample.bits + TIME_TAG + varint(sample.time_ms)
    if sample.start_ms:
        value += START_TAG + varint(sample.start_ms)
    encoded = SAMPLE_TAG + varint(len(value)) + value
    return number(ZERO_BITS, sample.zero_ms) + encoded if sample.zero_ms else encoded


def number(bits: bytes, time_ms: int) -> bytes:
    return delimited(SAMPLES, VALUE_TAG + bits + TIME_TAG + varint(time_ms))

"""A request of remote write 1.0 (``prometheus.WriteRequest``), written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek_prometheus.families import Family, FamilyType
from odradek_prometheus.remote_write.histogram_bytes import histogram_bytes, stale_histogram
from odradek_prometheus.remote_write.protobuf import delimited, tag, varint
from odradek_prometheus.remote_write.request_v2 import TYPES
from odradek_prometheus.remote_write.sample import (
    NAME_LABEL,
    STALE_BITS,
    ZERO_BITS,
    Sample,
    labels_before_name,
)

SERIES, METADATA = 1, 3
LABELS, SAMPLES, HISTOGRAMS = 1, 2, 4


def request_v1(samples: Sequence[Sample], families: Iterable[Family] = ()) -> bytes:
    """The body of a request, uncompressed.

    Args:
        samples: The samples.
        families: The families to describe.
    """
    encoded_labels: dict[tuple[str, str], bytes] = {}
    parts = []
    for sample in samples:
        labels = []
        for label in sample.labels:
            found = encoded_labels.get(label)
            if found is None:
                found = encoded_labels[label] = label_bytes(*label)
            labels.append(found)
        labels.insert(labels_before_name(sample.labels), label_bytes(NAME_LABEL, sample.name))
        labels.append(values(sample))
        parts.append(delimited(SERIES, b"".join(labels)))
    parts += [delimited(METADATA, description(family)) for family in families]
    return b"".join(parts)


def label_bytes(name: str, value: str) -> bytes:
    return delimited(LABELS, delimited(1, name.encode()) + delimited(2, value.encode()))


def values(sample: Sample) -> bytes:
    """The sample or histogram of a series, after its zero."""
    if sample.histogram is not None:
        return delimited(HISTOGRAMS, histogram_bytes(sample.histogram, sample.time_ms))
    if sample.family.type is FamilyType.EXPONENTIAL:
        return delimited(HISTOGRAMS, stale_histogram(STALE_BITS, sample.time_ms))
    value = number(sample.bits, sample.time_ms)
    return number(ZERO_BITS, sample.zero_ms) + value if sample.zero_ms else value


def number(bits: bytes, time_ms: int) -> bytes:
    return delimited(SAMPLES, tag(1, 1) + bits + tag(2, 0) + varint(time_ms))


def description(family: Family) -> bytes:
    """The message ``MetricMetadata``."""
    parts = [tag(1, 0) + varint(TYPES[family.type]), delimited(2, family.name.encode())]
    if family.help:
        parts.append(delimited(4, family.help.encode()))
    if family.unit:
        parts.append(delimited(5, family.unit.encode()))
    return b"".join(parts)

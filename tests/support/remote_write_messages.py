"""The messages of remote write, read by protobuf with the published field numbers."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from odradek.otlp import message_classes

HISTOGRAM = {
    "count_int": (1, "uint64"),
    "sum": (3, "double"),
    "schema": (4, "sint32"),
    "zero_threshold": (5, "double"),
    "zero_count_int": (6, "uint64"),
    "negative_spans": (8, "Span*"),
    "negative_deltas": (9, "sint64*"),
    "positive_spans": (11, "Span*"),
    "positive_deltas": (12, "sint64*"),
    "timestamp": (15, "int64"),
    "start_timestamp": (17, "int64"),
}
SPAN = {"offset": (1, "sint32"), "length": (2, "uint32")}
V2 = message_classes(
    "test.v2",
    {
        "Request": {"symbols": (4, "string*"), "timeseries": (5, "TimeSeries*")},
        "TimeSeries": {
            "labels_refs": (1, "uint32*"),
            "samples": (2, "Sample*"),
            "histograms": (3, "Histogram*"),
            "metadata": (5, "Metadata"),
        },
        "Sample": {"value": (1, "fixed64"), "timestamp": (2, "int64"), "start_timestamp": (3, "int64")},
        "Metadata": {"type": (1, "int32"), "help_ref": (3, "uint32"), "unit_ref": (4, "uint32")},
        "Histogram": HISTOGRAM,
        "Span": SPAN,
    },
)
V1 = message_classes(
    "test.v1",
    {
        "WriteRequest": {"timeseries": (1, "TimeSeries*"), "metadata": (3, "Metadata*")},
        "TimeSeries": {"labels": (1, "Label*"), "samples": (2, "Sample*"), "histograms": (4, "Histogram*")},
        "Label": {"name": (1, "string"), "value": (2, "string")},
        "Sample": {"value": (1, "fixed64"), "timestamp": (2, "int64")},
        "Metadata": {
            "type": (1, "int32"),
            "metric_family_name": (2, "string"),
            "help": (4, "string"),
            "unit": (5, "string"),
        },
        "Histogram": HISTOGRAM,
        "Span": SPAN,
    },
)


class WrittenSeries(NamedTuple):
    """A series of a request."""

    labels: dict[str, str]
    series: Any
    """The message. Values of samples are the bits of doubles."""
    about: tuple[int, str, str] = (0, "", "")
    """Type, help and unit."""


def number(bits: int) -> float:
    """The double with these bits."""
    (found,) = struct.unpack("<d", struct.pack("<Q", bits))
    return float(found)


def series_of_v2(body: bytes) -> list[WrittenSeries]:
    """The series of a request of 2.0, whose symbols and labels are well-formed."""
    request: Any = V2["Request"].FromString(body)
    symbols = list(request.symbols)
    assert symbols[0] == ""
    assert len(set(symbols)) == len(symbols)
    found = []
    for series in request.timeseries:
        texts = [symbols[ref] for ref in series.labels_refs]
        labels = dict(zip(texts[::2], texts[1::2], strict=True))
        assert list(labels) == sorted(labels)
        about = series.metadata
        found.append(
            WrittenSeries(labels, series, (about.type, symbols[about.help_ref], symbols[about.unit_ref]))
        )
    return found


def series_of_v1(body: bytes) -> list[WrittenSeries]:
    """The series of a request of 1.0, whose labels are well-formed."""
    request: Any = V1["WriteRequest"].FromString(body)
    found = []
    for series in request.timeseries:
        labels = {each.name: each.value for each in series.labels}
        assert [each.name for each in series.labels] == sorted(labels)
        found.append(WrittenSeries(labels, series))
    return found

"""A push: the first byte chooses its codec and whether it is labeled."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from bench.payloads import java25k, librd6k, small
from odradek.otlp import NotOtlp
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.telemetry.payload import open_payload
from odradek.wire.compression import Codec, CorruptData, TooLarge, compress

LIMITS = PayloadLimits(max_bytes=65_536, max_resource_metrics=500, max_resources=16, max_fields=5_000)
LABELS = encode_labels({"client_id": "c", "rack": "r"})
LABELED = 0x80


def seeds() -> Iterator[bytes]:
    """Pushes as clients send them, and parts of them."""
    for payload in (small(), librd6k(), java25k()):
        for codec in Codec:
            for flag in (0, LABELED):
                yield bytes((codec | flag,)) + compress(codec, payload.raw)
        yield bytes((LABELED,)) + payload.raw[:700]


def check(data: bytes) -> None:
    """Open the push; protobuf must be able to read what plugins get."""
    if not data:
        return
    labels = LABELS if data[0] & LABELED else None
    try:
        opened = open_payload((data[0] & ~LABELED) % (len(Codec) + 1), data[1:], labels, LIMITS)
    except (TooLarge, CorruptData, NotOtlp):
        return
    MetricsData.FromString(opened)

"""Decodes records of the telemetry topic into the rows of four tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import NotOtlp
from odradek.topic import MalformedTelemetry, TopicFormat
from odradek_tables.decoder.by_protobuf import Undecodable, decode_by_protobuf
from odradek_tables.decoder.columns import (
    US_PER_MS,
    day_and_hour,
    histogram_columns,
    point_columns,
    push_columns,
)
from odradek_tables.decoder.payload_points import PayloadPoints
from odradek_tables.decoder.record import LATEST_MS, Push, PushReader
from odradek_tables.decoder.series import Numbered, ResourceLabels, Series
from odradek_tables.decoder.shape import ShapeCache, make_shape
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.schemas import DEAD_LETTER, INGESTED

MAX_LEARNED_BYTES = 256 << 20
"""Bytes of new payloads and resources after which a worker process clears its caches."""
NO_POINTS = PayloadPoints(
    np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), 0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderSettings:
    """Limits for data that clients send."""

    clock_skew_max_ms: int = 900_000
    """Largest accepted error of a client's clock: ``ts`` is at most this far from ``recv_ts``."""
    max_payload_bytes: int = 64 << 20
    """Larger payloads become dead letters."""
    max_dead_letter_bytes: int = 1 << 20
    """Bytes that are kept of a dead letter."""
    topic_format: TopicFormat = TopicFormat.ODRADEK
    interval_ms: int = 60_000
    """Stands for the push interval in formats that tell none."""


@dataclass(slots=True)
class Counts:
    """The contents of some records."""

    pushes: int = 0
    points: int = 0
    dead_letters: int = 0
    further: int = 0
    """Pushes of records after their first one."""
    payload_bytes: int = 0
    batches: int = 0

    @property
    def records(self) -> int:
        return self.pushes - self.further + self.dead_letters

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of some records, by table; text columns are dictionary-encoded."""

    points: pa.RecordBatch
    histograms: pa.RecordBatch
    pushes: pa.RecordBatch
    dead_letter: pa.RecordBatch
    further: int = 0
    """The pushes of records after their first one: a record of OTLP may have several."""

    def batches(self) -> Iterable[tuple[str, pa.RecordBatch]]:
        return ((table.name, getattr(self, table.name)) for table in INGESTED)


@dataclass(slots=True)
class Decoder:
    """Decodes batches, and caches shapes, series, resources and clients between them.

    It is not thread-safe: use one per process.
    """

    settings: DecoderSettings = field(default_factory=DecoderSettings)
    reader: PushReader = field(init=False)
    shapes: ShapeCache = field(default_factory=ShapeCache)
    series: Numbered[Series] = field(default_factory=Numbered)
    resources: Numbered[ResourceLabels] = field(default_factory=Numbered)
    resource_bytes: dict[bytes, int] = field(default_factory=dict)
    """Numbers of resources by their bytes."""
    learned_bytes: int = 0

    def __post_init__(self) -> None:
        self.reader = PushReader(self.settings.topic_format, self.settings.interval_ms)

    def decode(self, records: Sequence[TopicRecord]) -> Decoded:
        """Decode records. Their contents never cause an exception.

        Every record becomes a row of ``dead_letter`` or of ``pushes``; one of OTLP, a row of ``pushes`` for
        each client in it.
        """
        self.forget_if_full()
        pushes: list[Push] = []
        found: list[PayloadPoints] = []
        dead: list[dict[str, Any]] = []
        further = 0
        for record in records:
            try:
                theirs = self.reader.read(record)
                points = [self.points_of(labeled_payload(push)) for push in theirs]
            except (MalformedTelemetry, Undecodable) as error:
                dead.append(self.dead_letter(record, str(error)))
                continue
            if len(theirs) > 1:
                points = in_one_record(points)
                further += len(theirs) - 1
            pushes += theirs
            found += points
        pushes = in_order(pushes)
        return Decoded(
            point_columns(pushes, found, self.series, self.resources, self.settings.clock_skew_max_ms),
            histogram_columns(pushes, found, self.settings.clock_skew_max_ms),
            push_columns(pushes, found),
            pa.RecordBatch.from_pylist(dead, DEAD_LETTER.schema),
            further,
        )

    def points_of(self, payload: bytes) -> PayloadPoints:
        """Decode the data points of a payload, by the fastest method that supports it.

        Raises:
            Undecodable: The payload is not OTLP, or too large.
        """
        if not payload:
            return NO_POINTS
        if len(payload) > self.settings.max_payload_bytes:
            raise Undecodable(
                f"the payload has {len(payload)} bytes, the limit is {self.settings.max_payload_bytes}"
            )
        shape = self.shapes.find(payload)
        if shape is not None:
            resource = self.resource_number(payload[slice(*shape.resource)])
            if resource is not None:
                return shape.points(payload, resource)
        self.learned_bytes += len(payload)
        found = decode_by_protobuf(payload, self.series, self.resources)
        learned = make_shape(payload, found, self.series) if shape is None else None
        if learned is not None:
            resource = self.resource_number(payload[slice(*learned.resource)])
            if np.all(found.resources == resource):
                self.shapes.add(learned)
                found.shape_id = learned.shape_id
        return found

    def resource_number(self, raw: bytes) -> int | None:
        """The number of a resource, parsed once.

        None if it is none, or has lists or maps: protobuf limits the depth counted from the payload, which
        parsing the resource alone would miss.
        """
        number = self.resource_bytes.get(raw)
        if number is None:
            try:
                attributes = Resource.FromString(raw).attributes
            except DecodeError:
                return None
            if any(each.value.WhichOneof("value") in ("array_value", "kvlist_value") for each in attributes):
                return None
            number = self.resource_bytes[raw] = self.resources.number(ResourceLabels.of(attributes))
            self.learned_bytes += len(raw)
        return number

    def forget_if_full(self) -> None:
        """Clear the caches at their limit. Shapes refer to series by number, so they are cleared too."""
        if self.learned_bytes > MAX_LEARNED_BYTES:
            self.learned_bytes = 0
            self.shapes.clear()
            self.series.clear()
            self.resources.clear()
            self.resource_bytes.clear()

    def dead_letter(self, record: TopicRecord, reason: str) -> dict[str, Any]:
        recv_ms = max(0, min(record.timestamp_ms, LATEST_MS))
        return {
            "recv_ts": recv_ms * US_PER_MS,
            "reason": reason,
            "bytes": (record.value or b"")[: self.settings.max_dead_letter_bytes],
            "src_partition": record.partition,
            "src_offset": record.offset,
            "date": day_and_hour(recv_ms)[0],
        }


@cache
def lasting_decoder(settings: DecoderSettings) -> Decoder:
    """The decoder of this worker process. It outlives tasks, and so do its caches."""
    return Decoder(settings)


def labeled_payload(push: Push) -> bytes:
    """The payload of a push. The labels are set if no host has done it."""
    label, payload = push.identity.label, push.payload
    if label is None or not payload:
        return payload
    try:
        return label(payload)
    except NotOtlp as error:
        raise Undecodable(str(error)) from error


def in_one_record(found: Sequence[PayloadPoints]) -> list[PayloadPoints]:
    """Number the points of several pushes of one record consecutively."""
    numbered, others = [], 0
    for each in found:
        numbered.append(each.after(others))
        others += each.count
    return numbered


def in_order(pushes: list[Push]) -> list[Push]:
    """Make receive times of a partition monotonic within a batch, in case the host's clock jumped back."""
    latest: dict[int, int] = {}
    ordered = []
    for push in pushes:
        at = latest[push.partition] = max(push.recv_ms, latest.get(push.partition, push.recv_ms))
        ordered.append(push if at == push.recv_ms else push._replace(recv_ms=at))
    return ordered

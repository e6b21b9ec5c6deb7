"""The labels of a client, set on the bytes of a MetricsData. One rule for all that set labels.

Strategy: never an object per metric. Java clients repeat the same Resource in a ResourceMetrics of its own
for each metric; they become one ResourceMetrics with one labeled Resource. librdkafka and franz-go send one
entry of one scope, whose Resource is found by its length. Their numbers have a fixed length, so a push is
mostly as long as the one before: then a comparison of its first bytes finds the same Resource. Different
resources, and schema URLs, stay apart: that is done on bytes, entry by entry, and bounded, since no client is
known to send them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from odradek.otlp.labels import EncodedLabels, encode_labels
from odradek.otlp.metrics_data import merged_resources, resource_metrics
from odradek.otlp.protobuf_bytes import ONE_BYTE, NotOtlp, delimited, varint
from odradek.otlp.protobuf_fields import FieldBudget, fields, length_bounds
from odradek.wire.compression import TooLarge

RESOURCE_METRICS: Final = 0x0A
"""MetricsData.resource_metrics: field 1."""
RESOURCE: Final = 0x0A
SCOPE_METRICS: Final = 0x12
SCHEMA_URL: Final = 0x1A

MAX_FIELDS: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadLimits:
    """Bounds on the cost of one payload."""

    max_bytes: int = 16 * 1024 * 1024
    """Bytes after decompression."""
    max_resource_metrics: int = 10_000
    max_resources: int = 256
    """Different (Resource, schema URL) pairs: each grows by all labels."""
    max_fields: int = MAX_FIELDS
    """Protobuf fields that may be read one by one if they have to be; more raise `TooMuchWork`."""
    require_otlp: bool = True
    """If false, bytes that are not OTLP are passed on unchanged."""


def labeler(labels: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """A function that sets labels on a serialized MetricsData, for a reader of records that have none.

    It raises `NotOtlp` for other bytes, and for more Resources or fields than a push may have. It remembers
    the last Resource, so use one for each client.
    """
    encoded, limits = encode_labels(labels), PayloadLimits()

    def label(data: bytes) -> bytes:
        try:
            whole = labeled_scope(data, encoded, limits)
            return labeled_entries(data, encoded, limits) if whole is None else whole
        except TooLarge as error:
            raise NotOtlp(str(error)) from error

    return label


def bounded_count(data: bytes, limits: PayloadLimits) -> int:
    """The number of entries; raises if there are too many."""
    entries = len(resource_metrics(data))
    if entries > limits.max_resource_metrics:
        raise too_many_entries(limits)
    return entries


def too_many_entries(limits: PayloadLimits) -> TooLarge:
    return TooLarge(f"more than {limits.max_resource_metrics} ResourceMetrics")


def labeled_scope(data: bytes, labels: EncodedLabels, limits: PayloadLimits) -> bytes | None:
    """A payload of one entry with one scope, with its labels; None for any other payload.

    The result is sound if ``data`` is, which is not checked here.
    """
    parts = single_scope(data)
    if parts is None:
        return None
    start, scope = parts
    resource = with_labels(data[start:scope], labels, FieldBudget(limits.max_fields))
    return one_entry(resource, data[scope:])


def labeled_entries(data: bytes, labels: EncodedLabels, limits: PayloadLimits) -> bytes:
    """Any payload with its labels, not yet validated; equal Resources become one."""
    entries = bounded_count(data, limits)
    if not entries:
        return data
    merged = merged_resources(data)
    resources = merged.resource
    found = len(resources)
    if (found == entries or not found) and not merged.schema_url:
        resource = resources[0] if found else b""
        own = delimited(RESOURCE, resource) if found else b""
        body = merged.SerializeToString()
        # Resources come first, so equal ones are a repetition that one comparison finds.
        repeated_bytes = len(own) * found
        if repeated_bytes <= len(body) and body.startswith(own * found):
            return one_entry(
                with_labels(resource, labels, FieldBudget(limits.max_fields)), body[repeated_bytes:]
            )
    return regrouped(data, labels, limits)


def single_scope(data: bytes) -> tuple[int, int] | None:
    """A payload of one entry with one scope, as librdkafka sends it: three lengths tell.

    Returns:
        Where the Resource starts, and where it ends and the scope follows. None for any other payload.
    """
    size = len(data)
    try:
        start, end = length_bounds(data, 1)
        if data[0] != RESOURCE_METRICS or end != size:
            return None
        scope = start
        if data[start] == RESOURCE:
            start, scope = length_bounds(data, start + 1)
        if data[scope] != SCOPE_METRICS:
            return None
        _, end = length_bounds(data, scope + 1)
    except IndexError:
        return None
    return (start, scope) if end == size else None


def with_labels(resource: bytes, labels: EncodedLabels, budget: FieldBudget) -> bytes:
    """A serialized Resource with the labels set, its own attributes of the same names replaced."""
    return labels.kept(resource, budget) + labels.encoded


def one_entry(resource: bytes, rest: bytes) -> bytes:
    """A ResourceMetrics from a Resource and the fields after it."""
    first = delimited(RESOURCE, resource)
    return b"".join((ONE_BYTE[RESOURCE_METRICS], varint(len(first) + len(rest)), first, rest))


def regrouped(data: bytes, labels: EncodedLabels, limits: PayloadLimits) -> bytes:
    """The payload with its labels, one entry for each different Resource and schema URL."""
    budget = FieldBudget(limits.max_fields)
    groups: dict[tuple[bytes, bytes], list[bytes]] = {}
    for tag, _, value, end in fields(data, budget):
        if tag == RESOURCE_METRICS:
            key, rest = taken_apart(data, value, end, budget)
            if key not in groups and len(groups) == limits.max_resources:
                raise TooLarge(f"more than {limits.max_resources} different resources")
            groups.setdefault(key, []).extend(rest)
    return b"".join(
        one_entry(with_labels(resource, labels, budget), b"".join((*rest, schema_url)))
        for (resource, schema_url), rest in groups.items()
    )


def taken_apart(
    data: bytes, start: int, end: int, budget: FieldBudget
) -> tuple[tuple[bytes, bytes], list[bytes]]:
    """The Resource and schema URL fields of a ResourceMetrics, and its other fields."""
    schema_url = b""
    resource: list[bytes] = []
    rest = []
    for tag, field_start, value, field_end in fields(data, budget, start, end):
        if tag == RESOURCE:
            resource.append(data[value:field_end])
        elif tag == SCHEMA_URL:
            schema_url = data[field_start:field_end]
        else:
            rest.append(data[field_start:field_end])
    return (b"".join(resource), schema_url), rest

"""Serialized ``MetricsData``, made smaller and filtered without decoding a metric.

ResourceMetrics with an equal Resource become one, and ScopeMetrics with an equal scope in it become one. If a
batch has one Resource and one scope, protobuf's C parser merges them (`odradek.otlp.merged_scopes`). If
Resources or scopes differ, the entries are grouped one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from odradek.otlp import (
    MergedResourceMetrics,
    NotOtlp,
    ShallowScopeMetrics,
    delimited,
    merged_resources,
    merged_scopes,
    metric_name,
    resource_metrics,
    shallow_resource_metrics,
    shallow_scope_metrics,
)

RESOURCE_METRICS: Final = 0x0A
RESOURCE: Final = 0x0A
SCOPE_METRICS: Final = 0x12
SCOPE: Final = 0x0A
METRICS: Final = 0x12
SHORT_NAME: Final = b"\x0a\x00"
LONG_NAME: Final = b"\x0a\x80"
SCHEMA_URL: Final = 0x1A
MAX_ENTRIES: Final = 10_000
"""Limit of ResourceMetrics or ScopeMetrics to group one by one; bytes with more are sent unchanged."""


def merged(data: bytes) -> bytes:
    """The same metrics with each Resource and scope written once; bytes that are not OTLP are unchanged."""
    try:
        whole = merged_scopes(data)
        if len(whole.resource) <= 1 and len(whole.scope_metrics.scope) == 1:
            return data  # one push of librdkafka: nothing is repeated
        if not is_uniform(data, whole):
            return regrouped(data, ())
    except NotOtlp:
        return data
    smaller = entry_of(first(whole.resource), [written_once(whole.scope_metrics)])
    return smaller if len(smaller) < len(data) else data


def filtered(data: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    """`merged`, with only the metrics whose names begin with one of the prefixes; empty if none does.

    Raises:
        NotOtlp: The bytes are not MetricsData.
    """
    whole = merged_scopes(data)
    if not is_uniform(data, whole):
        return regrouped(data, prefixes)
    scope = whole.scope_metrics
    kept = chosen(scope.metrics, prefixes)
    return entry_of(first(whole.resource), [scope_of(first(scope.scope), kept)]) if kept else b""


def is_uniform(data: bytes, whole: MergedResourceMetrics) -> bool:
    """Whether all ResourceMetrics have one Resource or none, and all ScopeMetrics one scope or none."""
    resources, scope = whole.resource, whole.scope_metrics
    if whole.schema_url or scope.schema_url:
        return False
    if resources and (len(set(resources)) > 1 or len(resources) != len(resource_metrics(data))):
        return False
    scopes = scope.scope
    return not scopes or (len(set(scopes)) == 1 and len(scopes) == len(merged_resources(data).scope_metrics))


def written_once(whole: ShallowScopeMetrics) -> bytes:
    """A merged ScopeMetrics as a field of ResourceMetrics, with its scope written once."""
    body = whole.SerializeToString()
    scopes = whole.scope
    if len(scopes) > 1:
        # Protobuf writes fields by number, so the equal scopes come first.
        repeated_bytes = len(delimited(SCOPE, scopes[0])) * (len(scopes) - 1)
        body = body[repeated_bytes:]
    return delimited(SCOPE_METRICS, body)


def regrouped(data: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    """Group entry by entry: one for each Resource and schema URL, in it one for each scope and schema URL.

    Fields that OTLP does not have are dropped. Without prefixes all metrics are kept.

    Raises:
        NotOtlp: An entry is not what OTLP has there.
    """
    entries = resource_metrics(data)
    if not prefixes and max(len(entries), len(merged_resources(data).scope_metrics)) > MAX_ENTRIES:
        return data
    groups: dict[tuple[bytes, bytes], dict[tuple[bytes, bytes], list[bytes]]] = {}
    for entry in map(shallow_resource_metrics, entries):
        owner = whole_message(entry.resource), last(entry.schema_url)
        group = groups.setdefault(owner, {})
        for scope in map(shallow_scope_metrics, entry.scope_metrics):
            kept = chosen(scope.metrics, prefixes) if prefixes else scope.metrics
            if kept:
                group.setdefault((whole_message(scope.scope), last(scope.schema_url)), []).extend(kept)
    return b"".join(
        entry_of(resource, [scope_of(scope, metrics, url) for (scope, url), metrics in group.items()], schema)
        for (resource, schema), group in groups.items()
        if group
    )


def chosen(metrics: Iterable[bytes], prefixes: tuple[bytes, ...]) -> list[bytes]:
    """The serialized Metrics whose names begin with one of the prefixes."""
    return [
        metric
        for metric in metrics
        # Every known client writes the name first. If it is shorter than 128 bytes, its length takes one byte
        # and the name starts at the third.
        if (
            metric.startswith(prefixes, 2)
            if SHORT_NAME <= metric[:2] < LONG_NAME
            else metric_name(metric).startswith(prefixes)
        )
    ]


def entry_of(resource: bytes, scopes: Iterable[bytes], schema_url: bytes = b"") -> bytes:
    """A ResourceMetrics as a field of MetricsData."""
    parts = [delimited(RESOURCE, resource)] if resource else []
    parts += scopes
    if schema_url:
        parts.append(delimited(SCHEMA_URL, schema_url))
    return delimited(RESOURCE_METRICS, b"".join(parts))


def scope_of(scope: bytes, metrics: Iterable[bytes], schema_url: bytes = b"") -> bytes:
    """A ScopeMetrics as a field of ResourceMetrics."""
    parts = [delimited(SCOPE, scope)] if scope else []
    parts += [delimited(METRICS, metric) for metric in metrics]
    if schema_url:
        parts.append(delimited(SCHEMA_URL, schema_url))
    return delimited(SCOPE_METRICS, b"".join(parts))


def first(messages: Sequence[bytes]) -> bytes:
    """The first of several equal messages; empty if there is none."""
    return messages[0] if messages else b""


def whole_message(parts: Sequence[bytes]) -> bytes:
    """A message that was written in several fields: protobuf merges it by concatenation."""
    return b"".join(parts) if len(parts) > 1 else first(parts)


def last(values: Sequence[bytes]) -> bytes:
    """The value of a string field: if it occurs several times, the last one counts."""
    return values[-1] if values else b""

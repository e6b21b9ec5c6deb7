"""Serialized ``MetricsData``, made smaller and filtered without decoding a metric.

ResourceMetrics of equal Resource become one, ScopeMetrics of equal scope in it become one: that is what the
C parser of protobuf does by itself with a *singular* message field that comes several times. What it finds
inside (resources, scopes, metrics) stays bytes. Where Resources or scopes differ, entries are put together
one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableSequence, Sequence
from typing import Final, Protocol, cast

from google.protobuf.message import DecodeError

from odradek_otlp.private_schema import message_classes

RESOURCE_METRICS: Final = 0x0A
RESOURCE: Final = 0x0A
SCOPE_METRICS: Final = 0x12
SCOPE: Final = 0x0A
METRICS: Final = 0x12
SHORT_NAME: Final = b"\x0a\x00"
LONG_NAME: Final = b"\x0a\x80"
SCHEMA_URL: Final = 0x1A
MAX_ENTRIES: Final = 10_000
"""Of ResourceMetrics or ScopeMetrics to be put together one by one; with more the bytes stay as they are."""


class ScopeMetrics(Protocol):
    """One or, merged, several."""

    scope: MutableSequence[bytes]
    metrics: MutableSequence[bytes]
    schema_url: MutableSequence[bytes]

    def SerializeToString(self) -> bytes: ...  # noqa: N802


class MergedEntry(Protocol):
    """All ResourceMetrics as one."""

    resource: MutableSequence[bytes]
    scope_metrics: ScopeMetrics
    schema_url: MutableSequence[bytes]

    def SerializeToString(self) -> bytes: ...  # noqa: N802


class Entry(Protocol):
    """One ResourceMetrics, or all as one, with their ScopeMetrics apart."""

    resource: MutableSequence[bytes]
    scope_metrics: MutableSequence[bytes]
    schema_url: MutableSequence[bytes]


class Merged(Protocol):
    entry: MergedEntry


class MergedEntries(Protocol):
    entry: Entry


class Listed(Protocol):
    entries: MutableSequence[bytes]


class Named(Protocol):
    """A Metric."""

    name: bytes


CLASSES = message_classes(
    "odradek.otlp.shallow",
    {
        "ScopeMetrics": {"scope": (1, "bytes*"), "metrics": (2, "bytes*"), "schema_url": (3, "bytes*")},
        "MergedEntry": {
            "resource": (1, "bytes*"),
            "scope_metrics": (2, "ScopeMetrics"),
            "schema_url": (3, "bytes*"),
        },
        "Entry": {"resource": (1, "bytes*"), "scope_metrics": (2, "bytes*"), "schema_url": (3, "bytes*")},
        "Merged": {"entry": (1, "MergedEntry")},
        "MergedEntries": {"entry": (1, "Entry")},
        "Listed": {"entries": (1, "bytes*")},
        "Named": {"name": (1, "bytes")},
    },
)
# Bound once: these run for every request.
parse_merged = cast(Callable[[bytes], Merged], CLASSES["Merged"].FromString)
parse_entries = cast(Callable[[bytes], MergedEntries], CLASSES["MergedEntries"].FromString)
parse_listed = cast(Callable[[bytes], Listed], CLASSES["Listed"].FromString)
parse_entry = cast(Callable[[bytes], Entry], CLASSES["Entry"].FromString)
parse_named = cast(Callable[[bytes], Named], CLASSES["Named"].FromString)
parse_scope = cast(Callable[[bytes], ScopeMetrics], CLASSES["ScopeMetrics"].FromString)


class NotMetrics(Exception):
    """The bytes are no MetricsData."""


def merged(data: bytes) -> bytes:
    """The same metrics with each Resource and scope written once; what is no MetricsData as it is."""
    try:
        whole = parse_merged(data).entry
        if len(whole.resource) <= 1 and len(whole.scope_metrics.scope) == 1:
            return data  # one push of librdkafka: nothing is written twice
        if not is_uniform(data, whole):
            return regrouped(data, ())
        smaller = entry_of(only(whole.resource), [written_once(whole.scope_metrics)])
    except DecodeError:
        return data
    return smaller if len(smaller) < len(data) else data


def filtered(data: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    """`merged`, and only the metrics whose names begin with one of the prefixes; empty when none does.

    Raises:
        NotMetrics: The bytes are no MetricsData.
    """
    try:
        whole = parse_merged(data).entry
        if not is_uniform(data, whole):
            return regrouped(data, prefixes)
        scope = whole.scope_metrics
        kept = chosen(scope.metrics, prefixes)
        return entry_of(only(whole.resource), [scope_of(only(scope.scope), kept)]) if kept else b""
    except DecodeError as error:
        raise NotMetrics(f"not MetricsData: {error}") from None


def is_uniform(data: bytes, whole: MergedEntry) -> bool:
    """All ResourceMetrics have the same Resource or none, all ScopeMetrics the same scope or none."""
    resources, scope = whole.resource, whole.scope_metrics
    if whole.schema_url or scope.schema_url:
        return False
    if resources and (len(set(resources)) > 1 or len(resources) != len(parse_listed(data).entries)):
        return False
    scopes = scope.scope
    return not scopes or (
        len(set(scopes)) == 1 and len(scopes) == len(parse_entries(data).entry.scope_metrics)
    )


def written_once(whole: ScopeMetrics) -> bytes:
    """A ScopeMetrics, less the repetitions of its scope, which protobuf writes before the metrics."""
    body = whole.SerializeToString()
    scopes = whole.scope
    if len(scopes) > 1:
        repeated_bytes = len(delimited(SCOPE, scopes[0])) * (len(scopes) - 1)
        body = body[repeated_bytes:]
    return delimited(SCOPE_METRICS, body)


def regrouped(data: bytes, prefixes: tuple[bytes, ...]) -> bytes:
    """Entry by entry: one for each Resource and schema URL, in it one for each scope and schema URL.

    Fields that OTLP does not have are dropped. Without prefixes all metrics are kept.
    """
    entries = parse_listed(data).entries
    if not prefixes and max(len(entries), len(parse_entries(data).entry.scope_metrics)) > MAX_ENTRIES:
        return data
    groups: dict[tuple[bytes, bytes], dict[tuple[bytes, bytes], list[bytes]]] = {}
    for entry in map(parse_entry, entries):
        owner = whole_message(entry.resource), last(entry.schema_url)
        group = groups.setdefault(owner, {})
        for scope in map(parse_scope, entry.scope_metrics):
            kept = chosen(scope.metrics, prefixes) if prefixes else scope.metrics
            if kept:
                group.setdefault((whole_message(scope.scope), last(scope.schema_url)), []).extend(kept)
    return b"".join(
        entry_of(resource, [scope_of(scope, metrics, url) for (scope, url), metrics in group.items()], schema)
        for (resource, schema), group in groups.items()
        if group
    )


def chosen(metrics: Iterable[bytes], prefixes: tuple[bytes, ...]) -> list[bytes]:
    """Serialized Metrics whose names begin with one of the prefixes."""
    return [
        metric
        for metric in metrics
        # Everyone writes the name first, and shorter than 128 bytes, so that its length takes one byte.
        if (
            metric.startswith(prefixes, 2)
            if SHORT_NAME <= metric[:2] < LONG_NAME
            else parse_named(metric).name.startswith(prefixes)
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


def only(messages: Sequence[bytes]) -> bytes:
    """The one that all are; empty when there is none."""
    return messages[0] if messages else b""


def whole_message(parts: Sequence[bytes]) -> bytes:
    """A message that came in several fields is those one after the other."""
    return b"".join(parts) if len(parts) > 1 else only(parts)


def last(values: Sequence[bytes]) -> bytes:
    """Of a string that came several times the last counts."""
    return values[-1] if values else b""


def delimited(tag: int, value: bytes) -> bytes:
    """A length-delimited field; ``tag`` below 128."""
    length = len(value)
    head = bytearray((tag,))
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return b"".join((head, value))

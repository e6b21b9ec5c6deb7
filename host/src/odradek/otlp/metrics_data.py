"""Serialized OTLP ``MetricsData``, merged and taken apart without an object per metric.

Java clients send one ResourceMetrics *per metric*, a few hundred in a push, each with the same Resource.
Walking through them as protobuf objects takes thirty times the CPU of this module, which uses two rules of
protobuf:

* A *singular* message field that occurs several times is merged. The schemas here declare ResourceMetrics
  (and, in `merged_scopes`, ScopeMetrics too) singular, so the C parser merges a whole push in one pass.
* A message field may be declared as bytes. The schemas here declare Resource, scope and Metric as bytes, so
  the parser copies them without looking inside.

To write the result, join fields made by `odradek.otlp.delimited`.
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence
from typing import Final, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError

from odradek.otlp.private_messages import message_classes
from odradek.otlp.protobuf_bytes import NotOtlp

T = TypeVar("T")


class ShallowScopeMetrics(Protocol):
    """A ScopeMetrics, or several merged into one. Each part is serialized."""

    scope: MutableSequence[bytes]
    """The InstrumentationScope of each ScopeMetrics that has one."""
    metrics: MutableSequence[bytes]
    schema_url: MutableSequence[bytes]

    def SerializeToString(self) -> bytes:  # noqa: N802
        """All scopes, then all metrics, then all schema URLs, then unknown fields."""


class ShallowResourceMetrics(Protocol):
    """A ResourceMetrics, or several merged into one. Each part is serialized."""

    resource: MutableSequence[bytes]
    """The Resource of each ResourceMetrics that has one."""
    scope_metrics: MutableSequence[bytes]
    schema_url: MutableSequence[bytes]

    def SerializeToString(self) -> bytes:  # noqa: N802
        """All resources, then all scope metrics, then all schema URLs, then unknown fields."""


class MergedResourceMetrics(Protocol):
    """All ResourceMetrics merged into one, and all their ScopeMetrics into one."""

    resource: MutableSequence[bytes]
    """The Resource of each ResourceMetrics that has one."""
    scope_metrics: ShallowScopeMetrics
    schema_url: MutableSequence[bytes]


class Resources(Protocol):
    """The result of `parse_resources`."""

    entry: ShallowResourceMetrics


class Scopes(Protocol):
    """The result of `parse_scopes`."""

    entry: MergedResourceMetrics


class Entries(Protocol):
    """The result of `parse_entries`."""

    entries: MutableSequence[bytes]


class Named(Protocol):
    """The result of `parse_named`."""

    name: bytes


CLASSES: Final = message_classes(
    "odradek.metrics_data",
    {
        "ScopeMetrics": {"scope": (1, "bytes*"), "metrics": (2, "bytes*"), "schema_url": (3, "bytes*")},
        "ResourceMetrics": {
            "resource": (1, "bytes*"),
            "scope_metrics": (2, "bytes*"),
            "schema_url": (3, "bytes*"),
        },
        "MergedResourceMetrics": {
            "resource": (1, "bytes*"),
            "scope_metrics": (2, "ScopeMetrics"),
            "schema_url": (3, "bytes*"),
        },
        "Resources": {"entry": (1, "ResourceMetrics")},
        "Scopes": {"entry": (1, "MergedResourceMetrics")},
        "Entries": {"entries": (1, "bytes*")},
        "Named": {"name": (1, "bytes")},
    },
)
# Bound once: these run for every push.
parse_resources: Final = cast(Callable[[bytes], Resources], CLASSES["Resources"].FromString)
parse_scopes: Final = cast(Callable[[bytes], Scopes], CLASSES["Scopes"].FromString)
parse_entries: Final = cast(Callable[[bytes], Entries], CLASSES["Entries"].FromString)
parse_entry: Final = cast(Callable[[bytes], ShallowResourceMetrics], CLASSES["ResourceMetrics"].FromString)
parse_scope: Final = cast(Callable[[bytes], ShallowScopeMetrics], CLASSES["ScopeMetrics"].FromString)
parse_named: Final = cast(Callable[[bytes], Named], CLASSES["Named"].FromString)


def merged_resources(data: bytes) -> ShallowResourceMetrics:
    """Merge all ResourceMetrics of a MetricsData into one.

    Raises:
        NotOtlp: The bytes are not a MetricsData.
    """
    return parsed(parse_resources, data).entry


def merged_scopes(data: bytes) -> MergedResourceMetrics:
    """Merge all ResourceMetrics of a MetricsData into one, and all their ScopeMetrics into one.

    Raises:
        NotOtlp: The bytes are not a MetricsData.
    """
    return parsed(parse_scopes, data).entry


def resource_metrics(data: bytes) -> MutableSequence[bytes]:
    """The serialized ResourceMetrics of a MetricsData, one by one.

    Raises:
        NotOtlp: The bytes are not a MetricsData.
    """
    return parsed(parse_entries, data).entries


def shallow_resource_metrics(data: bytes) -> ShallowResourceMetrics:
    """Take one serialized ResourceMetrics apart.

    Raises:
        NotOtlp: The bytes are not a ResourceMetrics.
    """
    return parsed(parse_entry, data)


def shallow_scope_metrics(data: bytes) -> ShallowScopeMetrics:
    """Take one serialized ScopeMetrics apart.

    Raises:
        NotOtlp: The bytes are not a ScopeMetrics.
    """
    return parsed(parse_scope, data)


def metric_name(data: bytes) -> bytes:
    """The name of a serialized Metric, in UTF-8; empty if it has none.

    Raises:
        NotOtlp: The bytes are not a Metric.
    """
    return parsed(parse_named, data).name


def parsed(parse: Callable[[bytes], T], data: bytes) -> T:
    """Call a parser; its error becomes `NotOtlp`."""
    try:
        return parse(data)
    except DecodeError as error:
        raise NotOtlp(f"not MetricsData: {error}") from None

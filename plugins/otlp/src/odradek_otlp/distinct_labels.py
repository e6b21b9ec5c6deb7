"""Labels that do not collide: the attributes of a Resource are distinct from those of its data points.

Many destinations make labels of one series of both, and lose a value if both have one name. So a data point
whose attribute has the name of a label gets a Resource of its own, with that label renamed.

Strategy: attributes come and go with metrics, and their names change the length of a push; numbers do not.
So a push of the same Resource and the same length as one without a collision is not looked into, except now
and then. For others protobuf's C parser merges the attributes of all points into one list. Only pushes with a
collision are taken apart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import (
    NotOtlp,
    body_start,
    delimited,
    message_classes,
    resource_metrics,
    shallow_resource_metrics,
)
from odradek.plugin import distinct_names, label_name
from odradek_otlp.metrics_bytes import entry_of
from odradek_otlp.taken_apart import TakenApart

log = logging.getLogger(__name__)

SCOPE_METRICS: Final = 0x12
MAX_CLEAN: Final = 100_000
"""Limit of remembered pairs of Resource and length: seven megabytes."""
LOOKED_INTO: Final = 64
"""One of so many pushes is looked into, although its Resource and length are known."""
MAX_LOGGED: Final = 100
"""Limit of names that are logged."""
MAX_TAKEN_APART_BYTES: Final = 1 << 20
"""In a larger push the label is renamed for all points, which takes no time for each point."""

POINTS: Final = {"gauge": 7, "sum": 7, "histogram": 9, "exponential_histogram": 1, "summary": 7}
"""The number of the field with the attributes, by the kind of a metric."""
CLASSES: Final = message_classes(
    "odradek.point_attributes",
    {
        "KeyValue": {"key": (1, "bytes")},
        **{f"Point{number}": {"attributes": (number, "bytes*")} for number in (1, 7, 9)},
        **{f"Data{number}": {"data_points": (1, f"Point{number}")} for number in (1, 7, 9)},
        "Metric": {
            kind: (Metric.DESCRIPTOR.fields_by_name[kind].number, f"Data{number}")
            for kind, number in POINTS.items()
        },
        "ScopeMetrics": {"metrics": (2, "Metric")},
        "ResourceMetrics": {"scope_metrics": (2, "ScopeMetrics")},
        "MetricsData": {"resource_metrics": (1, "ResourceMetrics")},
    },
)
"""OTLP with singular fields, which the parser merges (`odradek.otlp.metrics_data`)."""
parse_attributes: Final[Any] = CLASSES["MetricsData"].FromString
parse_key: Final[Any] = CLASSES["KeyValue"].FromString


@dataclass(slots=True)
class DistinctLabels:
    """The labels of all Resources that one destination gets."""

    clean: set[int] = field(default_factory=set)
    """Hashes of Resource and length of pushes without a collision."""
    pushes: int = 0
    """Pushes that were not looked into."""
    points: int = 0
    """Data points whose Resource has a renamed label. A push that is not taken apart counts as one."""
    logged: set[str] = field(default_factory=set)

    def apply(self, data: bytes) -> bytes:
        """The push with distinct labels; the same object if nothing collides, or if it is not OTLP."""
        split = body_start(data)
        if split is None:
            return self.looked_into(data)
        known = hash((data[split[0] : split[1]], len(data)))
        if known in self.clean:
            self.pushes += 1
            if self.pushes % LOOKED_INTO:
                return data
        result = self.looked_into(data)
        if result is not data:
            self.clean.discard(known)
        else:
            if len(self.clean) >= MAX_CLEAN:
                self.clean.clear()
            self.clean.add(known)
        return result

    def looked_into(self, data: bytes) -> bytes:
        """As `apply`, for any push."""
        try:
            own = attribute_names(data)
            resources = {
                b"".join(entry.resource) for entry in map(shallow_resource_metrics, resource_metrics(data))
            }
            if not any(collides(Resource.FromString(resource), own) for resource in resources):
                return data
            if len(data) > MAX_TAKEN_APART_BYTES:
                return self.renamed_whole(data, own)
            parsed = MetricsData.FromString(data)
        except (DecodeError, NotOtlp):
            return data
        parts: list[ResourceMetrics] = []
        for entry in parsed.resource_metrics:
            apart = TakenApart(entry, self.renamed)
            parts += apart.parts()
            self.points += apart.renamed_points
        return MetricsData(resource_metrics=parts).SerializeToString()

    def renamed_whole(self, data: bytes, own: frozenset[str]) -> bytes:
        """The push with all labels renamed that have the name of an attribute of any of its points."""
        parts = []
        for each in resource_metrics(data):
            entry = shallow_resource_metrics(each)
            resource = Resource.FromString(b"".join(entry.resource))
            names = self.renamed([attribute.key for attribute in resource.attributes], own)
            for attribute, name in zip(resource.attributes, names, strict=True):
                attribute.key = name
            scopes = [delimited(SCOPE_METRICS, scope) for scope in entry.scope_metrics]
            parts.append(entry_of(resource.SerializeToString(), scopes, b"".join(entry.schema_url[-1:])))
        self.points += 1
        return b"".join(parts)

    def renamed(self, attributes: Sequence[str], own: Iterable[str]) -> tuple[str, ...]:
        """The key of each attribute of a Resource, beside data points with these labels."""
        found, names = distinct_names(attributes, frozenset(own)), []
        for attribute in attributes:
            name = found[attribute]
            changed = name != label_name(attribute)
            names.append(name if changed else attribute)
            if changed and attribute not in self.logged and len(self.logged) < MAX_LOGGED:
                self.logged.add(attribute)
                log.warning(
                    "a label has the name of an attribute of data points, and is renamed for these points",
                    extra={"label": attribute, "new_name": name},
                )
        return tuple(names)


def collides(resource: Resource, own: frozenset[str]) -> bool:
    """Whether a label of a Resource has one of these names, or that of another of its labels."""
    attributes = {each.key for each in resource.attributes}
    names = set(map(label_name, attributes))
    return len(names) < len(attributes) or not own.isdisjoint(names)


def attribute_names(data: bytes) -> frozenset[str]:
    """The names of the labels that the attributes of all data points become.

    Raises:
        DecodeError: The bytes are not MetricsData.
    """
    scope = parse_attributes(data).resource_metrics.scope_metrics.metrics
    found: set[bytes] = set()
    for kind in POINTS:
        found.update(getattr(scope, kind).data_points.attributes)
    return frozenset(label_name(parse_key(each).key.decode(errors="replace")) for each in found)

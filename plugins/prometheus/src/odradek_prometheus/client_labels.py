"""The labels of a client instance: those of its series, and all facts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.otlp import merged_resources
from odradek.plugin import (
    CLIENT_LABELS,
    CLUSTER_NAME,
    CONTEXT_LABELS,
    TelemetryRecord,
    context_labels,
    distinct_names,
    label_name,
)
from odradek_prometheus.label_values import LABELS_MAX_BYTES, Labels, attributes_of, cut

INSTANCE: Final = "client_instance_id"
DEFAULT_SHOWN: Final = (
    "client_id",
    INSTANCE,
    "principal",
    "client_software_name",
    "client_software_version",
    "group_id",
    "transactional_id",
    "client_rack",
)


class Facts:
    """The attributes of a client: its own, then those that the host knows. They never change."""

    __slots__ = ("labels", "names", "pairs", "text")

    def __init__(self, pairs: Labels) -> None:
        self.pairs = pairs
        names = distinct_names([key for key, _ in pairs], frozenset())
        self.labels = tuple(sorted([(names[key], value) for key, value in pairs if names[key]]))
        """As the labels of a series whose data point has none."""
        self.names = frozenset([name for name, _ in self.labels])
        self.text = ""
        """The labels as the text formats have them, once they are needed."""

    @property
    def is_of_client(self) -> bool:
        """Whether they are a client's: what is told of a group or a topic has no client's label."""
        return INSTANCE in self.names

    def stored(self) -> bytes:
        """The facts as bytes, to be read by `read_facts`."""
        values = [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in self.pairs]
        return KeyValueList(values=values).SerializeToString()

    def shown(self, names: Collection[str]) -> Facts:
        """The attributes whose labels have these names, and the name of the cluster."""
        return Facts(
            tuple([pair for pair in self.pairs if pair[0] == CLUSTER_NAME or label_name(pair[0]) in names])
        )

    def beside(self, point: Labels) -> Labels:
        """All labels of a series. The labels of the data point keep their names."""
        if self.names.isdisjoint([name for name, _ in point]):
            return tuple(sorted(self.labels + point)) if point else self.labels
        found = dict(point)
        names = distinct_names([key for key, _ in self.pairs], found.keys())
        found |= {names[key]: value for key, value in self.pairs}
        found.pop("", None)
        return tuple(sorted(found.items()))


def read_facts(stored: bytes) -> Facts:
    """The facts of a stored client; none if the bytes are something else."""
    try:
        return Facts(tuple(attributes_of(stored)))
    except DecodeError:
        return Facts(())


def facts_of(record: TelemetryRecord, resource: bytes) -> Facts:
    """The facts of a client by its newest record.

    Args:
        record: The record.
        resource: Its serialized Resource; may be empty. Of long ones only the first attributes are kept.
    """
    known = {}
    if record.is_of_client:
        known = context_labels(record.payload.client_instance_id, record.context)
    try:
        attributes = Resource.FromString(resource).attributes
    except DecodeError:
        attributes = Resource().attributes
    own = KeyValueList(values=[each for each in attributes if each.key not in CONTEXT_LABELS])
    found, left_bytes = {}, LABELS_MAX_BYTES
    for key, text in attributes_of(own.SerializeToString()):
        value = cut(text)
        left_bytes -= len(key) + len(value)
        if left_bytes >= 0 or key in CLIENT_LABELS or key == CLUSTER_NAME:
            found[key] = value
    found |= {key: cut(text) for key, text in known.items() if text}
    return Facts(tuple(found.items()))


def serialized_resource(data: bytes) -> bytes:
    """The first Resource of a push; empty if it has none."""
    found = merged_resources(data).resource
    return found[0] if found else b""

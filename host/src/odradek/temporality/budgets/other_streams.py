"""Shared streams: the labels whose values become ``other``, and the aggregate of many gauges."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Literal, get_args

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList

from odradek.findings.client_metrics import UNKNOWN_AGGREGATE, client_metrics
from odradek.temporality.stream_key import Identity, Kind, canonical

OTHER: Final = "other"
REDUCIBLE: Final = frozenset(("partition", "node_id", "node.id", "topic", "task_id", "processor_node_id"))
"""Labels that a client may lose one by one before it loses all."""
AGGREGATE_LABEL: Final = "aggregate"
"""The label of a shared gauge whose value is a mean."""

Aggregate = Literal["sum", "max", "min", "mean"]
AGGREGATES: Final = get_args(Aggregate)


def labels_of(attributes: bytes) -> tuple[tuple[str, str], ...]:
    """The attributes of a stream as text."""
    return tuple([(each.key, text_of(each.value)) for each in KeyValueList.FromString(attributes).values])


def text_of(value: AnyValue) -> str:
    which = value.WhichOneof("value")
    return "" if which is None else str(getattr(value, which))


def aggregate_of(identity: Identity) -> Aggregate:
    """The way to combine the values of several clients in one stream."""
    if identity.kind != Kind.GAUGE:
        return "sum"
    known = client_metrics().get(identity.name)
    return known.aggregate if known is not None else UNKNOWN_AGGREGATE


def reduced(identity: Identity, labels: Container[str] | None) -> Identity:
    """A stream without the values of some labels.

    The labels stay, with the value ``other``. Without them, the partitions of a topic would become the
    client's own stream of the same name, which has no labels and counts the same records.

    Args:
        identity: The stream.
        labels: The labels; None for all, and then Resource and scope are left out too.
    """
    found = KeyValueList.FromString(identity.attributes).values
    values = [without_value(each) if labels is None or each.key in labels else each for each in found]
    if aggregate_of(identity) == "mean":
        values.append(KeyValue(key=AGGREGATE_LABEL, value=AnyValue(string_value="mean")))
    if labels is None:
        identity = identity._replace(resource=b"", scope="")
    return identity._replace(attributes=canonical(values))


def without_value(attribute: KeyValue) -> KeyValue:
    return KeyValue(key=attribute.key, value=AnyValue(string_value=OTHER))

"""Labeling with protobuf attributes, as an oracle: parse, set every Resource's attributes, serialize."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData


def label(data: bytes, labels: Mapping[str, str]) -> bytes:
    """Every Resource with ``labels``, each replacing the client's own attribute of the same name."""
    metrics = MetricsData.FromString(data)
    for entry in metrics.resource_metrics:
        attributes = entry.resource.attributes
        kept = [attribute for attribute in attributes if attribute.key not in labels]
        if len(kept) < len(attributes):
            del attributes[:]
            attributes.extend(kept)
        for key, value in labels.items():
            attributes.add(key=key).value.string_value = value
    return metrics.SerializeToString()

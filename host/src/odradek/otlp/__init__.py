"""The bytes of OTLP metrics: read, labelled, merged and cut.

Importing this room is cheap: the names that need a library are loaded on first use.

>>> from odradek.otlp import data_points, merged_scopes, metric_name, metrics_of_json
>>> gauge = b'{"name": "temperature", "gauge": {"dataPoints": [{"asDouble": 21.5}]}}'
>>> data = metrics_of_json(b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [' + gauge + b"]}]}]}")
>>> data_points(data), [metric_name(each) for each in merged_scopes(data).scope_metrics.metrics]
(1, [b'temperature'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use
from odradek.otlp.protobuf_bytes import NotOtlp, delimited

if TYPE_CHECKING:
    from odradek.otlp.labeled_payload import labeler
    from odradek.otlp.metrics_data import (
        MergedResourceMetrics,
        ShallowResourceMetrics,
        ShallowScopeMetrics,
        merged_resources,
        merged_scopes,
        metric_name,
        resource_metrics,
        shallow_resource_metrics,
        shallow_scope_metrics,
    )
    from odradek.otlp.otlp_json import metrics_of_json
    from odradek.otlp.private_messages import message_classes
    from odradek.otlp.push_bytes import body_start
    from odradek.otlp.sender_records import Sender, data_points, otlp_records

__all__ = [
    "MergedResourceMetrics",
    "NotOtlp",
    "Sender",
    "ShallowResourceMetrics",
    "ShallowScopeMetrics",
    "body_start",
    "data_points",
    "delimited",
    "labeler",
    "merged_resources",
    "merged_scopes",
    "message_classes",
    "metric_name",
    "metrics_of_json",
    "otlp_records",
    "resource_metrics",
    "shallow_resource_metrics",
    "shallow_scope_metrics",
]

# The module of each name that needs protobuf, or the libraries of compression.
__getattr__ = on_first_use(
    __name__,
    metrics_data="MergedResourceMetrics ShallowResourceMetrics ShallowScopeMetrics merged_resources "
    "merged_scopes metric_name resource_metrics shallow_resource_metrics shallow_scope_metrics",
    sender_records="Sender data_points otlp_records",
    push_bytes="body_start",
    labeled_payload="labeler",
    private_messages="message_classes",
    otlp_json="metrics_of_json",
)

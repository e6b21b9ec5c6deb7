"""The bytes of OTLP metrics: read, labelled, merged and cut.

Importing this room is cheap: the names that need a library are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

ON_FIRST_USE = {
    "MergedResourceMetrics": "metrics_data",
    "Sender": "sender_records",
    "ShallowResourceMetrics": "metrics_data",
    "ShallowScopeMetrics": "metrics_data",
    "body_start": "push_bytes",
    "data_points": "sender_records",
    "labeler": "labeled_payload",
    "merged_resources": "metrics_data",
    "merged_scopes": "metrics_data",
    "message_classes": "private_messages",
    "metric_name": "metrics_data",
    "metrics_of_json": "otlp_json",
    "otlp_records": "sender_records",
    "resource_metrics": "metrics_data",
    "shallow_resource_metrics": "metrics_data",
    "shallow_scope_metrics": "metrics_data",
}
"""The module of each name that needs protobuf, or the libraries of compression."""


def __getattr__(name: str) -> Any:
    if name not in ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{ON_FIRST_USE[name]}"), name)

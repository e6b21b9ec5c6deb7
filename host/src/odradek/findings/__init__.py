"""The meaning of clients' metrics: their reference, charts by concern, troubles, names of applications.

>>> from odradek.findings import client_metrics
>>> metric = client_metrics()["org.apache.kafka.producer.record.send.total"]
>>> metric.kind, metric.aggregate
('sum', 'sum')
"""

from __future__ import annotations

from odradek.findings.app_name import app_name
from odradek.findings.client_metrics import ClientMetric, client_metrics
from odradek.findings.concerns import CONCERNS, Chart, Concern
from odradek.findings.hints import FINDINGS, HINTS
from odradek.findings.troubles import TROUBLES, Condition, Trouble

__all__ = [
    "CONCERNS",
    "FINDINGS",
    "HINTS",
    "TROUBLES",
    "Chart",
    "ClientMetric",
    "Concern",
    "Condition",
    "Trouble",
    "app_name",
    "client_metrics",
]

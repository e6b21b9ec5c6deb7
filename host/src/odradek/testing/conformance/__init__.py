"""Reports how a client implements KIP-714: the standard metrics it sends, and its behavior."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use
from odradek.testing.conformance.exchange import Exchange, Handshake, Pushed, from_record

if TYPE_CHECKING:
    from odradek.testing.conformance.finding import Observation, Verdict
    from odradek.testing.conformance.metric_row import MetricRow, State
    from odradek.testing.conformance.report import ConformanceReport, RuleRow, conformance_report
    from odradek.testing.conformance.rules import RULES

__all__ = [
    "RULES",
    "ConformanceReport",
    "Exchange",
    "Handshake",
    "MetricRow",
    "Observation",
    "Pushed",
    "RuleRow",
    "State",
    "Verdict",
    "conformance_report",
    "from_record",
]

# Hosts of tests log exchanges; few tests ask for a report.
__getattr__ = on_first_use(
    __name__,
    finding="Observation Verdict",
    metric_row="MetricRow State",
    report="ConformanceReport RuleRow conformance_report",
    rules="RULES",
)

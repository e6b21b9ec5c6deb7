"""Reports how a client implements KIP-714: the standard metrics it sends, and its behavior."""

from odradek.testing.conformance.exchange import Exchange, Handshake, Pushed, from_record
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

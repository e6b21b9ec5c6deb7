"""Pushes for tests without clients: recordings of real clients, and generated ones of any size and shape."""

from odradek.testing.pushes.generator import metrics_data
from odradek.testing.pushes.otlp_senders import otlp_senders, recorded_otlp
from odradek.testing.pushes.recording import RecordedPush, observation, recorded, recorded_clients

__all__ = [
    "RecordedPush",
    "metrics_data",
    "observation",
    "otlp_senders",
    "recorded",
    "recorded_clients",
    "recorded_otlp",
]

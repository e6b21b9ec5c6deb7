"""Pushes for tests without clients: real ones, recorded, and made ones of any size and shape."""

from odradek.testing.pushes.generator import metrics_data
from odradek.testing.pushes.recording import RecordedPush, observation, recorded, recorded_clients

__all__ = ["RecordedPush", "metrics_data", "observation", "recorded", "recorded_clients"]

"""How detailed the metrics are; after org.apache.kafka.common.metrics.Sensor.RecordingLevel."""

from __future__ import annotations

from enum import IntEnum


class RecordingLevel(IntEnum):
    """A sensor records if its level is not above that of the registry (``metrics.recording.level``)."""

    INFO = 0
    DEBUG = 1
    TRACE = 2

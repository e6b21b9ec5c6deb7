"""Records to queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.plugin import TelemetryRecord
from support.telemetry_records import telemetry_record


@pytest.fixture
def record_of() -> Callable[[int], TelemetryRecord]:
    """A record with this many bytes of payload."""

    def record(size_bytes: int = 10) -> TelemetryRecord:
        return telemetry_record(bytes(size_bytes))

    return record

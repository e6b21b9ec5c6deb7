"""Requests of any API, written by the host's codec. ``tests/conformance/test_kio_oracle.py`` compares their
bytes with kio's. The answers of a node are recorded as bytes.
"""

from __future__ import annotations

import re
from typing import Any

from contrib.capture.kafka_requests import FLEXIBLE_SINCE, NAMES, Request

from odradek.wire.codec import encode

CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def request(message: Any, version: int) -> Request:
    """A request of any API. The API is registered with the recorder."""
    key = message.API_KEY
    NAMES[key] = CAPITALS.sub("_", type(message).__name__.removesuffix("Request")).lower()
    FLEXIBLE_SINCE[key] = message.FLEXIBLE.first
    return Request(key, version, encode(message, version))

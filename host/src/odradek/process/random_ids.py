"""Random ids of a host."""

from __future__ import annotations

import secrets
from uuid import uuid4

from odradek.wire.limits import INT32_MAX


def random_uuid() -> bytes:
    """The 16 bytes of a random UUID (version 4)."""
    return uuid4().bytes


def random_session_id() -> int:
    """An unpredictable id for a fetch session, from 1 on."""
    return secrets.randbelow(INT32_MAX - 1) + 1

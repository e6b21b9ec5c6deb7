"""Client instance ids, which the host gives to clients that have none."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import DASH

ONE_UUID: Final = bytes(15) + b"\x01"
"""``Uuid.ONE_UUID``, which Kafka reserves like the nil one."""
RESERVED_UUIDS: Final = frozenset({NIL_UUID, ONE_UUID})


def new_client_instance_id(random_uuid: Callable[[], bytes], taken: Container[bytes]) -> bytes:
    """A random id that is not reserved, not taken, and does not begin with a dash."""
    while True:
        raw = random_uuid()
        if raw not in RESERVED_UUIDS and raw[0] >> 2 != DASH and raw not in taken:
            return raw

"""The origins of the records stored last, to recognize a record that comes a second time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from odradek.plugin.protocols import Origin, TelemetryRecord

Key = tuple[str, int, int, bytes]
"""An origin, and the id of the client instance."""

MAX_ORIGINS: Final = 65_536
"""About 20 MB. A record that is repeated after so many others is stored again."""


@dataclass(slots=True, eq=False)
class RecentOrigins:
    """A bounded memory of origins, oldest first.

    An origin alone does not identify a record: a message of OTLP has several clients, and a host that lost
    the end of its log with its power uses the same offsets again. The client instance and the time of the
    record tell them apart.
    """

    own_topic_id: Callable[[], str] = str
    """The telemetry topic of this host, whose records were stored here before they left. Empty: none."""
    received: OrderedDict[Key, int] = field(default_factory=OrderedDict)
    """The time of each record, epoch milliseconds."""
    max_origins: int = MAX_ORIGINS

    def add(self, record: TelemetryRecord) -> bool:
        """Remember a record; False if it is a repetition. A record without an origin is always new."""
        origin = record.origin
        if origin is None:
            return True
        key, received_ms = key_of(record, origin), record.context.received_ms
        if origin.topic_id == self.own_topic_id() or self.received.get(key) == received_ms:
            return False
        self.received[key] = received_ms
        if len(self.received) > self.max_origins:
            self.received.popitem(last=False)
        return True

    def forget(self, record: TelemetryRecord) -> None:
        """Forget a record that was not stored after all."""
        if record.origin is not None:
            self.received.pop(key_of(record, record.origin), None)


def key_of(record: TelemetryRecord, origin: Origin) -> Key:
    return (*origin, record.payload.client_instance_id)

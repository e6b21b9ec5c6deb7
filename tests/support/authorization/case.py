"""A request of a caller who lacks rights, with the rights that it has.

The world of the requests: topics ``open`` and ``shut`` (two partitions each), group ``club`` with offsets in
both, transactional id ``tx`` with both in its open transaction, consumer group ``crew`` whose member reads
both, and nothing that is called ``gone``. ``shut`` is the topic that callers may not see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from odradek.wire.types import NIL_UUID

ALL = ("shut", "gone", "open")
NOWHERE = b"?" * 16
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Ids = dict[str, bytes]
"""The id of each topic; that of ``gone`` was never used."""


MASKED = frozenset({"brokers", "cluster_id", "host", "port", "nodes"})
"""Fields that differ from node to node."""
DUMP = "Request Request("
"""The beginning of some of Kafka's texts: a dump of the Java object, with addresses."""


@dataclass(frozen=True, slots=True)
class Case:
    """One request of one caller."""

    name: str
    grants: Sequence[str]
    """``READ TOPIC open``, ``ALTER CLUSTER``."""
    ask: Callable[[Ids], Any]
    version: int | None = None
    """None for the newest."""
    unordered: bool = False
    """The order of the answer is that of a hash table in Kafka."""
    masked: Sequence[str] = ()
    """Fields that differ from run to run."""
    again: Callable[[Any], Any] = lambda _answer: None
    """The next request after an answer; None after the last one."""


def plain(value: Any, ids: Ids, case: Case) -> Any:
    """A response as JSON, with names in place of topic ids."""
    if is_dataclass(value):
        return {
            each.name: "*"
            if each.name in MASKED or each.name in case.masked
            else plain(getattr(value, each.name), ids, case)
            for each in fields(value)
            if each.name != "throttle_time_ms"
        }
    if isinstance(value, list):
        items = [plain(each, ids, case) for each in value]
        return sorted(items, key=str) if case.unordered else items
    if isinstance(value, bytes | bytearray | memoryview):
        known = {topic_id: f"id of {name}" for name, topic_id in ids.items()} | {NIL_UUID: "no id"}
        return known.get(bytes(value), bytes(value).hex())
    if isinstance(value, str) and value.startswith(DUMP):
        return DUMP
    return value

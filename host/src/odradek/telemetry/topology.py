"""Who writes to and reads from which topic, and since when.

A use is a client, a topic and a direction. The number of uses is bounded, and the oldest are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from odradek.metrics.metric import MetricRow, Metrics
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting

LOOK_MS: Final = 10_000
"""How often it is looked at who uses what: the last use of a topic is known to this time."""
UNNAMED_MS: Final = 60_000
MOST_UNNAMED: Final = 10_000
"""Uses of topics whose names are not known yet."""
TIMES: Final = ("first_ms", "last_ms")
TOPOLOGY: Metrics[Topology] = Metrics("odradek.topology")
TOPOLOGY.gauge("uses", "{use}", "Clients with a topic and a direction that are known", "uses")
TOPOLOGY.counter("dropped", "{use}", "Uses that were forgotten because there were too many, the oldest first")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologySettings:
    """How much is known of who uses what."""

    most: int = setting(
        "topology.uses.max",
        Whole(INT, 0),
        100_000,
        "Uses (a client, a topic, and whether it writes or reads) that are remembered for "
        "`odradek topology`; beyond this number the oldest is forgotten. 0 remembers nothing.",
        unit="uses",
        page="cli.md",
    )


class Client(NamedTuple):
    """The facts that tell one client from another."""

    client_id: str
    address: str
    principal: str
    library: str
    library_version: str


class Use(NamedTuple):
    """A client, a topic and a direction."""

    client: Client
    topic: str
    writes: bool


def merged(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of several programs: one for each use, the most recent first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault(tuple(value for key, value in row.items() if key not in TIMES), {**row})
        known["first_ms"] = min(known["first_ms"], row["first_ms"])
        known["last_ms"] = max(known["last_ms"], row["last_ms"])
    return sorted(found.values(), key=lambda row: -row["last_ms"])


class Topology:
    """The uses of a host or a gateway.

    Args:
        most: Uses that are remembered.
        name_of: The name of a topic with an id; None if it is not known.
    """

    def __init__(self, most: int, name_of: Callable[[bytes], str | None]) -> None:
        self.most = most
        self.name_of = name_of
        self.uses: OrderedDict[Use, tuple[int, int]] = OrderedDict()
        """The times of the first and the last use, epoch milliseconds. Least recently used first."""
        self.dropped = 0
        self.unnamed: dict[tuple[Client, bytes, bool], int] = {}
        """Uses of topics whose names are not known, with the time."""

    def note(self, client: Client, topic: str | bytes, *, writes: bool, now_ms: int) -> None:
        """Note a use.

        Args:
            client: The client.
            topic: By name or id.
            writes: Whether it writes.
            now_ms: Epoch milliseconds.
        """
        name = self.name_of(topic) if isinstance(topic, bytes) else topic
        if name is None:
            assert isinstance(topic, bytes)
            if len(self.unnamed) < MOST_UNNAMED:
                self.unnamed[client, topic, writes] = now_ms
            return
        use = Use(client, name, writes)
        known = self.uses.pop(use, None)
        self.uses[use] = (now_ms if known is None else known[0]), now_ms
        if len(self.uses) > self.most:
            self.uses.popitem(last=False)
            self.dropped += 1

    def name_topics(self, now_ms: int) -> None:
        """Look up the names of topics again that were not known; forget those that nobody names."""
        unnamed, self.unnamed = self.unnamed, {}
        for (client, topic, writes), then_ms in unnamed.items():
            if now_ms - then_ms <= UNNAMED_MS:
                self.note(client, topic, writes=writes, now_ms=then_ms)

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """The uses, most recent first. May be called on another thread."""
        for use, (first_ms, last_ms) in reversed(list(self.uses.items())):
            yield {
                **use.client._asdict(),
                "topic": use.topic,
                "direction": "write" if use.writes else "read",
                "first_ms": first_ms,
                "last_ms": last_ms,
            }

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the topology itself."""
        return TOPOLOGY.rows(self)

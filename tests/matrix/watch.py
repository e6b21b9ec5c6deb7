"""What rings: the findings of the console and the alerts of each Prometheus, asked every second."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PERIOD_S: Final = 1.0
TIMEOUT_S: Final = 10.0
SEEN: Final = ""
"""In place of a finding: the outlet knows the client."""
CLIENTS: Final = "/api/v1/query?query=kafka_client_info"
OUTLETS: Final = ("console", "scrape", "remote write")
NOTES: Final = frozenset(
    {"one-record-batches", "small-batches", "known-defect", "past-support", "clock-skew"}
)
"""Facts that are worth knowing, and no troubles."""
WORD: Final = re.compile(r"[A-Z][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class Ring:
    """A finding or an alert, of one subject."""

    outlet: str
    """``console``, ``scrape`` or ``remote write``."""
    id: str
    subject: tuple[str, ...]
    """What its labels name: client, group, topic, node."""


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
        return json.load(response)


def console_rings(url: str) -> Iterator[Ring]:
    """All clients, and their findings."""
    for row in asked(f"{url}/api/v1/clients?rows=1000")["clients"]:
        for finding in {SEEN, *row["findings"]} - NOTES:
            yield Ring("console", finding, (row["client_id"], row["group_id"]))


def prometheus_rings(outlet: str, url: str) -> Iterator[Ring]:
    """All clients, and the alerts that fire."""
    for series in asked(url + CLIENTS)["data"]["result"]:
        yield Ring(outlet, SEEN, (series["metric"].get("client_id", ""),))
    for alert in asked(f"{url}/api/v1/alerts")["data"]["alerts"]:
        labels: Mapping[str, str] = alert["labels"]
        if alert["state"] == "firing":
            words = WORD.findall(labels["alertname"].removeprefix("KafkaClient"))
            named = [labels.get(each, "") for each in ("client_id", "group_id", "topic", "node_id")]
            yield Ring(outlet, "-".join(words).lower(), tuple(named))


@dataclass
class Watch:
    """Asks every second, in a thread."""

    outlets: Mapping[str, Callable[[], Iterator[Ring]]]
    seen: dict[Ring, list[float]] = field(default_factory=dict)
    """The times at which each has rung, as `time.monotonic` tells them."""
    misses: int = 0
    """Questions without an answer."""
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.ended.wait(PERIOD_S):
            for ask in self.outlets.values():
                now_s = time.monotonic()
                try:
                    for ring in set(ask()):
                        self.seen.setdefault(ring, []).append(now_s)
                except OSError:
                    self.misses += 1

    def of(self, cell: str) -> dict[Ring, list[float]]:
        """What has rung for the clients, the group or the topic of one cell."""
        return self.where(lambda ring: any(each.startswith(f"{cell}.") for each in ring.subject))

    def of_nodes(self) -> dict[Ring, list[float]]:
        """What has rung for a node, and no client."""
        return self.where(
            lambda ring: len(ring.subject) == 4 and not ring.subject[0] and bool(ring.subject[3])
        )

    def where(self, wanted: Callable[[Ring], bool]) -> dict[Ring, list[float]]:
        return {ring: list(times) for ring, times in dict(self.seen).items() if wanted(ring)}


@contextlib.contextmanager
def watching(outlets: Mapping[str, Callable[[], Iterator[Ring]]]) -> Iterator[Watch]:
    """Watch for the length of the body."""
    watch = Watch(outlets)
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        yield watch
    finally:
        watch.ended.set()
        thread.join()

"""Delivers the openings and closings of anomalies from the table to destinations.

The column ``delivered`` has, for each destination, the last event that it accepted:
``"alertmanager=opened webhook=closed"``. It is committed after each accepted request. A run that is killed
between the two repeats that request, with the same ids; nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow.compute as pc

from odradek_spark.jobs.destinations import BATCH, ENDED, OPENED, Destination, Event, NotDelivered, post
from odradek_spark.jobs.rewriting import IS_OPEN, OPEN, Row, key, rewritten, rows_of
from odradek_tables.dataset import JOB, Dataset
from odradek_tables.log import live
from odradek_tables.schemas import ANOMALIES

APP_ID = "deliver"
LATEST = timedelta(days=1)
"""An episode that ended longer ago than this is not delivered any more."""
ATTEMPTS = 5
"""Attempts to commit if other runs commit meanwhile."""
Post = Callable[[Destination, Sequence[Event], datetime], None]


@dataclass(slots=True)
class Delivered:
    """The result of a run."""

    opened: int = 0
    closed: int = 0
    failures: list[str] = field(default_factory=list)
    """``name: why``, one for each destination that failed."""

    def line(self) -> str | None:
        """One line for people; None if there was nothing to do."""
        parts = [f"{self.opened} openings, {self.closed} closings"] if self.opened + self.closed else []
        parts += [f"{each}; the next run tries again" for each in self.failures]
        return "deliver: " + "; ".join(parts) if parts else None


def states(text: str | None) -> dict[str, str]:
    """The last event of each destination."""
    return dict(each.split("=", 1) for each in (text or "").split())


def due(row: Row, destination: Destination) -> Iterator[Event]:
    """The events of an episode that a destination needs, in their order."""
    if row["delivered"] is None:  # found by a version without destinations
        return
    last = states(row["delivered"]).get(destination.name)
    if row["state"] == OPEN:
        if last is None or destination.repeats:
            yield Event(row, OPENED)
        return
    if last == ENDED:
        return
    if last is None:
        yield Event(row, OPENED)
    yield Event(row, ENDED)


def run_deliver(
    root: str, destinations: Sequence[Destination], now: datetime, send: Post = post
) -> Delivered | None:
    """Deliver what is due, in batches; a failing destination does not delay the others.

    Returns:
        None if the table does not exist.

    Raises:
        DatasetError: Other writers committed first at every attempt.
    """
    dataset = Dataset(root)
    table = dataset.open(ANOMALIES)
    if table is None:
        return None
    ended_ts = pc.coalesce(pc.field("closed_ts"), pc.field("last_ts"))
    rows = rows_of(dataset, live(table), IS_OPEN | (ended_ts >= now - LATEST))
    done = Delivered()
    for destination in destinations:
        events = [event for row in rows for event in due(row, destination)]
        for begin in range(0, len(events), BATCH):
            batch = events[begin : begin + BATCH]
            try:
                send(destination, batch, now)
            except NotDelivered as error:
                done.failures.append(f"{destination.name}: {error}")
                break
            fresh = [
                each for each in batch if states(each.row["delivered"]).get(destination.name) != each.event
            ]
            if fresh:
                mark(dataset, destination, fresh)
            done.opened += sum(each.event == OPENED for each in fresh)
            done.closed += sum(each.event == ENDED for each in fresh)
    return done


def mark(dataset: Dataset, destination: Destination, events: Sequence[Event]) -> None:
    """Store in the table what a destination accepted."""
    told = {key(each.row): each.event for each in events}  # the closing comes after the opening
    for _ in range(ATTEMPTS):
        files = live(dataset.existing(ANOMALIES))
        changed = [each for each in rows_of(dataset, files) if key(each) in told]
        for each in changed:
            accepted = states(each["delivered"]) | {destination.name: told[key(each)]}
            each["delivered"] = " ".join(f"{name}={event}" for name, event in sorted(accepted.items()))
        info = {JOB: APP_ID, "destination": destination.name, "events": len(events)}
        if not changed or rewritten(dataset, changed, files, info):
            return

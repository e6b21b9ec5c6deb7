"""Whether a deploy has changed anything: the figures of an application before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from odradek_console.engine.client import Client
from odradek_console.engine.fleet import Fleet
from odradek_console.figures import FIGURES, HOUR_MS, SOURCES, WORST, Source, means, tellers_of
from odradek_console.json_form import JsonRow
from odradek_console.overview import Change
from odradek_console.rows import ClientRow
from odradek_console.text import readable

COMPARED: Final = ("latency", "records", "bytes", "throttled", "idle")
CHANGED: Final = 1.5
"""Times more or less: a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow(JsonRow):
    """A change, with what it has done to the figures of its application."""

    row: Change
    changed: tuple[str, ...]
    """Figures before and after that differ, and findings now; empty for changes that are no deploys."""
    same: tuple[str, ...]
    """Figures that do not differ."""


def events(
    fleet: Fleet, changes: Iterable[Change], rows: Sequence[ClientRow], now_ms: int
) -> Iterator[EventRow]:
    """The changes with their effects. The caller holds the lock."""
    for change in changes:
        changed, same = list[str](), list[str]()
        some = [row for row in rows if row.app == change.app]
        clients = [found for row in some if (found := fleet.clients.get(row.instance)) is not None]
        for name in COMPARED if change.app is not None else ():
            for text, differs in compared(fleet, clients, name, change.time_ms, now_ms):
                (changed if differs else same).append(text)
        new = [row for row in some if row.first_ms >= change.time_ms]
        findings = dict.fromkeys(each.id for row in new for each in row.troubles if not each.is_shared)
        changed += [f"finding {each}" for each in findings] if change.app is not None else []
        yield EventRow(row=change, changed=tuple(changed), same=tuple(same))


def compared(
    fleet: Fleet, clients: Sequence[Client], name: str, time_ms: int, now_ms: int
) -> Iterator[tuple[str, bool]]:
    """A figure in the hour before a time and in that after it, from the first source that has both."""
    for source in SOURCES[name]:
        before = typical(fleet, clients, name, source, time_ms - 1)
        after = typical(fleet, clients, name, source, min(now_ms, time_ms + HOUR_MS), time_ms)
        if before is None or after is None:
            continue
        low, high = sorted((before, after))
        differs = high > CHANGED * low
        now, then = readable(after, source.unit), readable(before, source.unit)
        yield (
            (f"{FIGURES[name].lower()} {then} → {now}" if differs else f"{FIGURES[name].lower()} {now}"),
            differs,
        )
        return


def typical(
    fleet: Fleet, clients: Sequence[Client], name: str, source: Source, end_ms: int, begin_ms: int = 0
) -> float | None:
    """The median over the hour before a time of what all clients have together; None without values."""
    steps = defaultdict[int, list[float]](list)
    for client in clients:
        for _, series in tellers_of(fleet, client):
            places = series.whole(source.metric)
            found = means(series, places, end_ms, is_worst=name in WORST, begin_ms=begin_ms)
            for step, value in found.items():
                steps[step].append(value)
    unite = max if name in WORST else min if name == "idle" else sum
    return median(unite(values) for values in steps.values()) if steps else None

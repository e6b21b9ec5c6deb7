"""A receiver of remote write with Prometheus' rules, as a mood of `support.otlp_collector`."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import snappy

from support.otlp_collector import Exchange
from support.remote_write_messages import WrittenSeries, number, series_of_v1, series_of_v2

STALE: Final = 0x7FF0000000000002
Labels = frozenset[tuple[str, str]]


class Stored(NamedTuple):
    """A stored sample."""

    time_ms: int
    bits: int
    start_ms: int = 0

    @property
    def value(self) -> float | None:
        """None for a staleness marker."""
        return None if self.bits == STALE else number(self.bits)


def answering(status: int, text: str = "", **headers: str) -> Callable[[Exchange], None]:
    """A mood that reads the request and always answers the same."""

    def mood(exchange: Exchange) -> None:
        exchange.body()
        exchange.answer(status, text, **headers)

    return mood


def written(samples: int) -> dict[str, str]:
    """The headers that count what was stored."""
    return {"X_Prometheus_Remote_Write_Samples_Written": str(samples)}


@dataclass(eq=False)
class StoringReceiver:
    """Stores what it gets. Of 1.0 a request with a bad sample is refused as a whole, as Prometheus does."""

    takes_v2: bool = True
    samples: dict[Labels, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    about: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    """Type, help and unit by name."""
    histograms: list[Any] = field(default_factory=list)
    """All native histograms."""
    requests: list[tuple[str, int]] = field(default_factory=list)
    """Version and number of series of each request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, exchange: Exchange) -> None:
        body = snappy.uncompress(exchange.body())
        is_v2 = "write.v2.Request" in exchange.headers["content-type"]
        with self.lock:
            self.headers.append({name.lower(): value for name, value in exchange.headers.items()})
            if is_v2 and not self.takes_v2:
                exchange.answer(415, "unknown proto message")
                return
            found = series_of_v2(body) if is_v2 else series_of_v1(body)
            self.requests.append(("2.0" if is_v2 else "1.0", len(found)))
            stored, problems = self.store(found, as_a_whole=not is_v2)
        if is_v2:
            exchange.answer(400 if problems else 204, "\n".join(problems), **written(stored))
        else:
            exchange.answer(400 if problems else 204, "\n".join(problems[:1]))

    def store(self, found: Iterable[WrittenSeries], *, as_a_whole: bool) -> tuple[int, list[str]]:
        """Store good samples; return their number, and a line for each bad one."""
        good: list[tuple[Labels, Stored]] = []
        newest: dict[Labels, Stored] = {labels: rows[-1] for labels, rows in self.samples.items()}
        problems, stored = [], 0
        for each in found:
            labels = frozenset(each.labels.items())
            self.about[each.labels["__name__"]] = each.about
            self.histograms += each.series.histograms
            stored += len(each.series.histograms)
            for sample in each.series.samples:
                row = Stored(sample.timestamp, sample.value, getattr(sample, "start_timestamp", 0))
                problem = problem_of(newest.get(labels), row)
                if problem:
                    problems.append(f"{problem} for series {sorted(labels)}")
                else:
                    good.append((labels, row))
                    newest[labels] = row
        if problems and as_a_whole:
            return 0, problems
        for labels, row in good:
            if row not in self.samples[labels][-1:]:
                self.samples[labels].append(row)
        return len(good) + stored, problems

    def series(self, name: str, **labels: str) -> list[Stored]:
        """The samples of the only series with a name and some labels; empty if there is none."""
        with self.lock:
            found = [
                rows
                for each, rows in self.samples.items()
                if each >= {("__name__", name), *labels.items()} and rows
            ]
            assert len(found) <= 1, found
            return list(found[0]) if found else []

    def values(self, name: str, **labels: str) -> list[float | None]:
        """Their values; None for a marker."""
        return [row.value for row in self.series(name, **labels)]

    def names(self) -> set[str]:
        with self.lock:
            return {dict(labels)["__name__"] for labels in self.samples}


def problem_of(newest: Stored | None, row: Stored) -> str:
    if newest is None or row.time_ms > newest.time_ms or row[:2] == newest[:2]:
        return ""
    return "duplicate sample for timestamp" if row.time_ms == newest.time_ms else "out of order sample"

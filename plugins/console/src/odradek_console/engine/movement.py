"""The lag of a client judged by its movement, as Burrow does: never by a number of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.findings.troubles import CONSUMER, FETCH, LEAST_LAG_S
from odradek_console.engine.client_series import ClientSeries, Labels, Place

IDLE: Final = CONSUMER + "poll.idle.ratio.avg"
BETWEEN: Final = CONSUMER + "time.between.poll.avg"
FETCHING: Final = FETCH + "fetch.latency.avg"
IDLE_SHARE, BETWEEN_MS, FETCHING_MS = 0.1, 5_000, 1_000


LEAST_VALUES: Final = 3
"""Values of a window that is full."""


class Lag(NamedTuple):
    """A lag that does not shrink."""

    labels: Labels
    values: Sequence[tuple[int, float]]
    """By time, since it last shrank or was 0."""
    moves: bool
    """Whether the position has moved in the window; the lag grows then."""

    @property
    def lag(self) -> float:
        """The lag now, in records."""
        return self.values[-1][1]


def lag_of(series: ClientSeries, place: Place, position: str, window_ms: int) -> Lag | None:
    """The lag of a partition that is in trouble; None if it is well, or the window is not full.

    Args:
        series: The client.
        place: Its lag.
        position: The metric of what it has read, by topic or in all.
        window_ms: The time that is looked at.
    """
    values = series.values(place)
    run = len(values) - 1
    while run > 0 and 0 < values[run - 1][1] <= values[run][1]:
        run -= 1
    lasting = values[max(run, 0) :]
    if len(lasting) < LEAST_VALUES or lasting[-1][1] <= 0 or lasting[-1][0] - lasting[0][0] < window_ms:
        return None
    begin_ms, lag = lasting[-1][0] - window_ms, lasting[-1][1]
    first = next(value for time_ms, value in reversed(lasting) if time_ms <= begin_ms)
    topic = dict(place.labels).get("topic")
    places = series.places.get(position, ())
    read = [each for each in places if dict(each.labels).get("topic") == topic] or series.whole(position)
    records = sum(value for each in read for time_ms, value in series.values(each) if time_ms > begin_ms)
    is_behind = lag > first and lag > records / window_ms * 1000 * LEAST_LAG_S
    return Lag(place.labels, lasting, records > 0) if not records or is_behind else None


def cause_of(series: ClientSeries, since_ms: int) -> str:
    """What makes a consumer slow, in words; empty if its metrics do not say."""
    idle, between, fetching = (series.latest(name, since_ms) for name in (IDLE, BETWEEN, FETCHING))
    if idle and min(idle) < IDLE_SHARE:
        return f"Its application is slow: it spends {min(idle):.0%} of its time in poll()."
    if between and max(between) > BETWEEN_MS:
        return f"Its application is slow: {max(between) / 1000:.0f} s pass between two calls of poll()."
    if fetching and max(fetching) > FETCHING_MS:
        return f"Fetching is slow: a request takes {max(fetching):.0f} ms."
    return ""

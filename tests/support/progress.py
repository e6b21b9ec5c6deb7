"""The progress of a client under a quota, also on a machine that stands still for seconds."""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

Points = list[tuple[float, float]]
"""Times and amounts."""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """The units per second of a client that always wants more, by two clocks.

    A client that stands still for a while uses less than its quota, and the quota is not to blame. So the
    quota is the upper bound of the rate over the whole time, and the lower bound of the rate over the time
    for which the client was throttled. While nothing stands still, both rates are the same within a percent.
    """

    overall: float
    while_throttled: float

    def hold_to(self, quota: float, above: float = 0.05, below: float = 0.1) -> bool:
        """Whether the client used its quota and no more, within relative errors.

        Kafka's windows move by whole seconds and forget a burst as a whole, eleven seconds after its end:
        depending on their requests, clients get up to 8 % less than their quota.
        """
        return self.overall <= (1 + above) * quota and self.while_throttled >= (1 - below) * quota


@dataclass(slots=True)
class Progress:
    """Received units, and throttle times."""

    arrivals: Points = field(default_factory=list)
    """Seconds, and the total so far."""
    throttles: Points = field(default_factory=list)
    """Seconds, and the throttle time from then on."""
    began_s: float = field(default_factory=time.monotonic)
    lasted_s: float = 0
    """Until the client has ended."""

    def arrived(self, amount: float, at_s: float | None = None) -> None:
        """Add an amount, by default now."""
        self.arrivals.append((time.monotonic() if at_s is None else at_s, self.total + amount))

    def throttled(self, seconds: float, at_s: float | None = None) -> None:
        """Begin a throttle time, by default now. It replaces the rest of an earlier one."""
        if seconds > 0:
            self.throttles.append((time.monotonic() if at_s is None else at_s, seconds))

    def end(self) -> None:
        """Note that the client has ended, possibly later than it should."""
        self.lasted_s = time.monotonic() - self.began_s

    @property
    def total(self) -> float:
        return self.arrivals[-1][1] if self.arrivals else 0

    def rates(self) -> MeasuredRates:
        """The rates from the first throttle on, after the initial burst, to the last arrival."""
        assert self.throttles, "never throttled"
        begin_s = self.throttles[0][0]
        steps = zip([(0.0, 0.0), *self.arrivals], self.arrivals, strict=False)
        amounts = [(at_s, after - before) for (_, before), (at_s, after) in steps if at_s > begin_s]
        overall = [(at_s - begin_s, amount) for at_s, amount in amounts]
        return MeasuredRates(weighted_rate(overall), weighted_rate(self.by_throttled_time(amounts)))

    def lag_s(self) -> float:
        """The median time from the end of a throttle time to the next arrival or throttle time."""
        return median(self.waits_s(self.throttles))

    def waits_s(self, events: Points) -> Iterator[float]:
        """The times from the end of each event to the next one of any kind."""
        lengths = dict.fromkeys((at_s for at_s, _ in self.arrivals), 0.0) | dict(self.throttles)
        times = sorted(lengths)
        ends = ((at_s + lengths[at_s], bisect_right(times, at_s)) for at_s, _ in events)
        return (times[index] - end_s for end_s, index in ends if index < len(times))

    def by_throttled_time(self, amounts: Points) -> Points:
        """Replace the times of amounts by the seconds for which the client was throttled until then."""
        found: Points = []
        throttled_s, at_s, until_s = 0.0, 0.0, 0.0
        # the number tells throttles from amounts of the same time: sorting keeps throttles first
        events = chain(((*row, 0) for row in self.throttles), ((*row, 1) for row in amounts))
        for event_s, value, is_amount in sorted(events, key=lambda event: (event[0], event[2])):
            throttled_s += max(min(event_s, until_s) - at_s, 0)
            at_s = event_s
            if is_amount:
                found.append((throttled_s, value))
            else:
                until_s = event_s + value
        return found


def weighted_rate(amounts: Points) -> float:
    """Units per second from time 0 to the last amount, weighted with a Hann window.

    Clients use a quota in bursts: the initial one is allowed again when it has left the windows of the quota.
    A plain mean would depend on whether the time ends before or after a burst. Here the middle of the time
    has the most weight and both ends have none.
    """
    end_s = amounts[-1][0]
    weighted = sum(amount * math.sin(math.pi * at_s / end_s) ** 2 for at_s, amount in amounts)
    return weighted / (end_s / 2)

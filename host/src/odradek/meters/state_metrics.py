"""The metrics of the limits of persistent state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized

from odradek.metrics.metric import MetricRow, Metrics
from odradek.settings.state_limit import NAME_KEY, NameLimit, StateLimit

LIMITS = Metrics[StateLimit]("odradek.state", "kind", "setting")
LIMITS.gauge("count", "1", "Present number, by kind", lambda it: it.count())
LIMITS.gauge("limit", "1", "Largest number, by kind", "most")
REFUSALS = Metrics[StateLimit | NameLimit]("odradek.state", "kind", "setting")
REFUSALS.counter("refused", "1", "Additions refused because of the limit, by kind", "refusals.number")
SKIPPED = Metrics[Sized]("odradek.subscriptions")
SKIPPED.gauge(
    "skipped",
    "{subscription}",
    "Subscriptions that apply to no client because a stored pattern cannot be used",
    len,
)


def state_rows(limits: Iterable[StateLimit], names: NameLimit, skipped: Sized) -> Iterator[MetricRow]:
    """The present count, the limit and the refusals of each kind of state, the refusals of names, and the
    number of skipped subscriptions.
    """
    yield from SKIPPED.rows(skipped)
    yield from REFUSALS.rows(names, kind="long-names", setting=NAME_KEY)
    for limit in limits:
        labels = {"kind": limit.kind.replace(" ", "-"), "setting": limit.setting}
        yield from LIMITS.rows(limit, **labels)
        yield from REFUSALS.rows(limit, **labels)

"""The metrics of the limits of persistent state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized

from odradek.meters.instrument import Instrument
from odradek.settings.state_limit import NAME_KEY, NameLimit, StateLimit
from odradek.telemetry.client_metrics_stats import MetricRow

STATE_INSTRUMENTS = {
    "state-count": Instrument("odradek.state.count", "gauge", "1", "Present number, by kind"),
    "state-limit": Instrument("odradek.state.limit", "gauge", "1", "Largest number, by kind"),
    "state-refused": Instrument(
        "odradek.state.refused", "counter", "1", "Additions refused because of the limit, by kind"
    ),
    "subscriptions-skipped": Instrument(
        "odradek.subscriptions.skipped",
        "gauge",
        "{subscription}",
        "Subscriptions that apply to no client because a stored pattern cannot be used",
    ),
}
"""By row name."""


def state_rows(limits: Iterable[StateLimit], names: NameLimit, skipped: Sized) -> Iterator[MetricRow]:
    """The present count, the limit and the refusals of each kind of state, the refusals of names, and the
    number of skipped subscriptions.
    """
    yield MetricRow("subscriptions-skipped", "gauge", {}, len(skipped))
    long_names = {"kind": "long-names", "setting": NAME_KEY}
    yield MetricRow("state-refused", "counter", long_names, names.refusals.number)
    for limit in limits:
        labels = {"kind": limit.kind.replace(" ", "-"), "setting": limit.setting}
        yield MetricRow("state-count", "gauge", labels, limit.count())
        yield MetricRow("state-limit", "gauge", labels, limit.most)
        yield MetricRow("state-refused", "counter", labels, limit.refusals.number)

"""The metrics of one forwarder: its accounts, and what it tells of its points, totals and series."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from odradek.delivery.delivery_ledger import ForwarderStats
from odradek.metrics.metric import MetricRow, Metrics
from odradek.plugin.protocols import CountsRefusedPoints, Forwarder, RenamesLabels
from odradek.temporality import Counts, KeepsTotals, TotalsFigures

if TYPE_CHECKING:
    from odradek.temporality.budgets.folding import Folding
    from odradek.temporality.budgets.policy import BudgetCounts

TOP = 20
"""Apps with a metric of their own: the number of apps is up to the clients."""

FORWARDERS = Metrics[ForwarderStats]("odradek.forwarder", "plugin")
"""offered = delivered + dropped + rejected + queued."""
FORWARDERS.counter("offered", "{push}", "Pushes offered to a forwarder")
FORWARDERS.counter("delivered", "{push}", "Pushes that the destination accepted")
FORWARDERS.counter("dropped", "{push}", "Pushes that the host gave up", by="reason")
FORWARDERS.counter("rejected", "{push}", "Pushes that the destination permanently refused", by="reason")
FORWARDERS.gauge(
    "queued", "{push}", "Pushes that are waiting or being delivered", lambda it: it.queued + it.in_flight
)

FORWARDERS.gauge(
    "failing", "s", "Time since the destination or the plugin began to fail, with its last error", by="error"
)

REFUSED = Metrics[CountsRefusedPoints]("odradek.forwarder", "plugin")
REFUSED.counter(
    "refused.points",
    "{point}",
    "Data points that the destination did not store, of pushes that it accepted",
    by="reason",
)
RENAMED = Metrics[RenamesLabels]("odradek.forwarder", "plugin")
RENAMED.counter(
    "renamed.points",
    "{point}",
    "Data points beside which a label has another name, because they have an attribute of that name",
)

TOTALS = Metrics[Counts, TotalsFigures]("odradek.temporality", "plugin")
TOTALS.counter("records", "{record}", "Records that were added to the totals")
TOTALS.counter("repeated.records", "{record}", "Records that came again and were not added again")
TOTALS.counter("lost.records", "{record}", "Records that the log had deleted before they were added")
TOTALS.counter("points", "{point}", "Data points that were added", "added_points")
TOTALS.counter("rejected.points", "{point}", "Data points that were left out, by reason", by="reason")
TOTALS.counter("gaps", "{gap}", "Data points that do not begin where the last one ended")
TOTALS.counter("gap", "s", "Time without increments, summed over all series", lambda it, _: it.gap_ns / 1e9)
TOTALS.counter("overlaps", "{point}", "Data points that begin before the last one ended")
TOTALS.counter("bad.starts", "{point}", "Data points without a valid start time")
TOTALS.counter("duplicates", "{point}", "Data points of one series in the same push", "duplicates_in_push")
TOTALS.counter("resets", "{series}", "Totals that began again", "epochs")
TOTALS.counter("inexact", "{series}", "Totals too large for a double to show exactly", "inexact_streams")
TOTALS.counter("dropped.exemplars", "{exemplar}", "Exemplars that were left out")
TOTALS.counter("forgotten.clients", "{client}", "Client instances that were forgotten")
TOTALS.counter(
    "forgotten.series", "{series}", "Series of other clients that were forgotten", "forgotten_streams"
)
TOTALS.gauge("series", "{series}", "Series with totals", lambda _, it: it.streams)
TOTALS.gauge("clients", "{client}", "Client instances with totals", lambda _, it: it.clients)
TOTALS.gauge("held.size", "By", "Approximate memory of the totals", lambda _, it: it.held_bytes)
TOTALS.counter("commits", "{commit}", "Transactions that stored totals", lambda _, it: it.commits)
TOTALS.counter("commit.time", "s", "Time that these transactions took", lambda _, it: it.commit_ns / 1e9)


def largest_apps(foldings: Sequence[Folding]) -> dict[tuple[str, str], int]:
    """The live series of apps, by principal and name."""
    from odradek.temporality.budgets.ranking import top  # a host without totals does not need it

    shares = top(foldings, "app", TOP, time.time_ns() // 1_000_000)
    return {(share.principal, share.name): share.series for share in shares}


def used_shares(foldings: Sequence[Folding]) -> dict[str, float]:
    """The used share of the fullest budget of each kind."""
    from odradek.temporality.budgets.ranking import usages

    return {usage.budget: usage.ratio for usage in usages(foldings)}


BUDGETS: Metrics[Sequence[Folding]] = Metrics("odradek.cardinality", "plugin")
BUDGETS.gauge("series", "{series}", "Live series of the largest apps", largest_apps, by="principal app")
BUDGETS.gauge("budget.ratio", "1", "Used share of the fullest budget of each kind", used_shares, by="budget")
OVER: Metrics[BudgetCounts] = Metrics("odradek.cardinality", "plugin")
OVER.counter("folded", "{stream}", "Streams over budget that were added to others", by="budget")
OVER.counter("refused", "{stream}", "Streams over budget that were left out", by="budget")


def destination_rows(
    name: str, forwarder: Forwarder, stats: ForwarderStats, failed: Callable[[Exception], None]
) -> Iterator[MetricRow]:
    """Yield the metrics of a forwarder. Any thread may call it.

    Args:
        name: The forwarder.
        forwarder: The plugin's object.
        stats: The accounts.
        failed: Called with what the plugin raises; its own rows are missing then.
    """
    yield from FORWARDERS.rows(stats, plugin=name)
    try:
        yield from list(own_rows(name, forwarder))
    except Exception as error:  # noqa: BLE001  a plugin's attributes may be properties
        failed(error)


def own_rows(name: str, forwarder: Forwarder) -> Iterator[MetricRow]:
    """A forwarder's own metrics: of its points, its totals, and its series if they have budgets."""
    if isinstance(forwarder, CountsRefusedPoints):
        yield from REFUSED.rows(forwarder, plugin=name)
    if isinstance(forwarder, RenamesLabels):
        yield from RENAMED.rows(forwarder, plugin=name)
    if isinstance(forwarder, KeepsTotals):
        yield from TOTALS.rows(forwarder.figures.counts, forwarder.figures, plugin=name)
        if foldings := forwarder.figures.foldings:
            yield from BUDGETS.rows(foldings, plugin=name)
            for each in foldings:
                yield from OVER.rows(each.policy.counts, plugin=name)

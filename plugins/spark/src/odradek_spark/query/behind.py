"""The metric behind an anomaly, as its rule compares it: values, increases over a window, or shares."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any, Final

from odradek.findings.client_metrics import PREFIX
from odradek.findings.troubles import BY_ID, SILENCE, Trouble
from odradek_spark.query.chart import Limit, Line, Page, Panel, Span, SpanPanel
from odradek_spark.query.concerns import condition, stated
from odradek_spark.query.series import Points, Row, increases, lines_of
from odradek_spark.query.units import unit_of

OPEN: Final = "open"
MAX_BEHIND: Final = 5
"""Limit of rules whose metric is drawn."""
MAX_EPISODES: Final = 40
"""Limit of the anomalies on the timeline."""
SAME_PUSH: Final = timedelta(seconds=1)
"""Java gives each metric of a push a time of its own."""
AGGREGATES: Final[Mapping[str, Callable[[Iterable[float]], float]]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "avg": fmean,
}


def anomalies_page(
    episodes: Sequence[Row], points: Sequence[Row], pushes: Sequence[Row], latest: datetime
) -> Page:
    """A timeline of anomalies, and the metrics behind the first of their rules.

    Args:
        episodes: Rows of `odradek_spark.query.questions.anomalies`.
        points: Rows of `odradek_spark.query.questions.series`: the metrics of `metrics_behind`.
        pushes: Rows with ``client_id``, ``client_instance_id``, ``minute`` and ``pushes``.
        latest: The time of the last push: open anomalies go on until then.
    """
    if not episodes:
        return Page("anomalies", "Anomalies", (), nothing="no anomalies in this time range")
    newest = sorted(episodes, key=lambda each: (each["state"] == OPEN, each["last_ts"]))[-MAX_EPISODES:]
    spans = [span_of(each, latest, f"{each['rule']}  {who(each)}") for each in episodes if each in newest]
    open_count = sum(each["state"] == OPEN for each in episodes)
    first = sorted(episodes, key=lambda each: each["state"] != OPEN)
    rules = list(dict.fromkeys(each["rule"] for each in first))
    panels = [
        behind_panel(rule, [each for each in episodes if each["rule"] == rule], points, pushes, latest)
        for rule in rules[:MAX_BEHIND]
    ]
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    margin = max((end - start) * 0.15, timedelta(minutes=1))
    title = f"Anomalies: {len(episodes):,}, {f'{open_count:,} open' if open_count else 'all over'}"
    which = f"the {MAX_EPISODES} that go on or ended last" if len(episodes) > MAX_EPISODES else "when"
    timeline = SpanPanel(f"{which}; an arrow marks those that go on", spans)
    more = len(rules) - len(panels)
    return Page(
        "anomalies",
        title,
        [timeline, *panels],
        f"the metrics behind {more} more rules are not drawn" if more > 0 else "",
        between=(start - margin, min(end + margin, max(latest, end))),
    )


def who(episode: Row) -> str:
    """The client of an episode."""
    return episode["client_id"] or f"instance {episode['client_instance_id'][:6]}"


def end_of(episode: Row, latest: datetime) -> datetime:
    """The end of an episode; an open one goes on until the last push of any client."""
    if episode["state"] == OPEN:
        ending: datetime = max(latest, episode["last_ts"])
        return ending
    found: datetime = max(episode["closed_ts"] or episode["last_ts"], episode["last_ts"])
    return found


def span_of(episode: Row, latest: datetime, label: str = "") -> Span:
    """The time range of an episode."""
    is_open = episode["state"] == OPEN
    return Span(label, episode["started_ts"], end_of(episode, latest), is_open)


def metrics_behind(episodes: Sequence[Row]) -> list[str]:
    """The full names of the metrics behind anomalies."""
    names = {each["name"] for each in episodes if each["name"]}
    shares = {BY_ID[each["rule"]].per for each in episodes if each["rule"] in BY_ID}
    return sorted((names | shares) - {"", SILENCE})


def behind_panel(
    rule: str, episodes: Sequence[Row], points: Sequence[Row], pushes: Sequence[Row], latest: datetime
) -> Panel:
    """The panel for the anomalies of one rule: the metric of their clients, and the threshold."""
    first = episodes[0]
    spans = [span_of(each, latest) for each in episodes]
    instances = {each["client_instance_id"] for each in episodes}
    if first["name"] == SILENCE:
        counts = [each for each in pushes if each["client_instance_id"] in instances]
        return Panel(
            f"{rule}: pushes received",
            "per min",
            push_lines(counts),
            spans=spans,
            note=said_of(rule, first, ""),
        )
    rows = [each for each in points if each["client_instance_id"] in instances]
    known = BY_ID.get(rule)
    if known is not None and (known.over_s or known.per):
        unit, lines = known.unit, compared_lines(rows, first["name"], known)
    else:
        labels = {(each["client_instance_id"], each["attrs"]) for each in episodes}
        rows = [
            each
            for each in rows
            if each["name"] == first["name"]
            and (
                (each["client_instance_id"], each["attrs"]) in labels
                or (each["client_instance_id"], None) in labels
            )
        ]
        unit, lines = lines_of(rows, name_clients=True)
    name = str(first["name"]).removeprefix(PREFIX)
    limit = Limit(first["threshold"], said_of(rule, first, unit))
    return Panel(f"{rule}: {name}", unit, lines, [limit], spans)


def said_of(rule: str, episode: Row, unit: str) -> str:
    """The condition of an episode's rule, as it was when the episode was found."""
    known = BY_ID.get(rule)
    same = known is not None and known.threshold == episode["threshold"]
    found = stated(known) if known and same else condition(episode["op"], episode["threshold"], unit)
    return f"threshold: {found}"


def push_lines(counts: Sequence[Row]) -> list[Line]:
    """A line of pushes per minute for each client."""
    found: dict[str, Points] = {}
    for row in counts:
        found.setdefault(who(row), []).append((row["minute"], float(row["pushes"])))
    return [Line(label, [at for at, _ in points], [n for _, n in points]) for label, points in found.items()]


def compared_lines(rows: Sequence[Row], name: str, trouble: Trouble) -> list[Line]:
    """The values that a trouble compares, a line for each instance."""
    lines = []
    for instance in dict.fromkeys(each["client_instance_id"] for each in rows):
        own = [each for each in rows if each["client_instance_id"] == instance]
        points = compared(own, name, trouble)
        if trouble.per:
            points = divided(points, compared(own, trouble.per, trouble))
        lines.append(Line(who(own[0]), [at for at, _ in points], [value for _, value in points]))
    return lines


def compared(rows: Sequence[Row], name: str, trouble: Trouble) -> Points:
    """The values of one metric of an instance: series joined by the aggregate, summed over the window."""
    by_labels: dict[str, list[Row]] = {}
    for row in rows:
        if row["name"] == name:
            by_labels.setdefault(row["attrs"] or "", []).append(row)
    at: dict[datetime, list[float]] = {}
    for series in by_labels.values():
        values: Iterable[tuple[Any, float]] = (
            [(end, value) for end, _, value in increases(series)]
            if trouble.over_s
            else [(row["ts"], row["number"]) for row in series]
        )
        for when, value in values:
            at.setdefault(when, []).append(value)
    joined = AGGREGATES.get(trouble.agg, max)
    points = [(when, joined(at[when])) for when in sorted(at)]
    return windowed(points, timedelta(seconds=trouble.over_s)) if trouble.over_s else points


def windowed(points: Points, window: timedelta) -> Points:
    """Each value replaced by the sum of the window that ends with it."""
    times = [at for at, _ in points]
    sums = [0.0]
    for _, value in points:
        sums.append(sums[-1] + value)
    return [(at, sums[index + 1] - sums[bisect_right(times, at - window)]) for index, at in enumerate(times)]


def divided(points: Points, by: Points) -> Points:
    """Values divided by those of another metric of the same push."""
    times = [at for at, _ in by]
    found: Points = []
    for at, value in points:
        index = bisect_right(times, at + SAME_PUSH) - 1
        if index >= 0 and by[index][1]:
            found.append((at, value / by[index][1]))
    return found


def lasted(episode: Row, latest: datetime) -> float:
    """Seconds from the beginning of an episode to its end."""
    seconds: float = (end_of(episode, latest) - episode["started_ts"]).total_seconds()
    return seconds


def unit_behind(episode: Row) -> str:
    """The unit of an episode's values."""
    known = BY_ID.get(episode["rule"])
    return known.unit if known is not None else unit_of(episode["name"] or "", None)

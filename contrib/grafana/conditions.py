"""The conditions of the table of troubles as PromQL: what the console asks of a client, asked of series."""

from __future__ import annotations

from typing import Final

from contrib.grafana.promql import duration, number, selector, window_s

from odradek.findings.client_metrics import client_metrics
from odradek.findings.incidents import LOST, OBSERVED
from odradek.findings.troubles import JAVA, LEAST_LAG_S, STEP_S, STEPS, THROTTLED, Condition, Kind, Trouble

TERMINATED: Final = "odradek_client_terminated"
SCRAPED: Final = ("instance", "job")
"""Labels of the scrape, not of the client."""
OF_CLIENT: Final = "on (client_instance_id)"
LIVES: Final = f"\nunless {OF_CLIENT} {TERMINATED} == 1"
"""A scrape sees the last values of a client for five minutes after its end."""
MEASURED: Final = 'label_replace(odradek_group_progress, "group_id", "$1", "group", "(.+)")'
"""Groups whose lag a host or a gateway measures: one alert tells of the group."""
INCIDENTS_S: Final = 120
"""The window of incidents, which are written every ten seconds and not every push interval: two scrapes."""
REMEMBERED: Final = "1h"
"""A client that was lost for longer is gone."""


def of_instance(agg: str, expression: str, *dropped: str) -> str:
    """Aggregate the series of an instance, which several hosts or scrapers may report; keep its labels."""
    return f"{agg} without ({', '.join((*SCRAPED, *dropped))}) ({expression})"


def step_s(interval_s: int) -> float:
    """A step of a trouble that comes again and again."""
    return max(STEP_S, interval_s)


def kept(interval_s: int, each: Condition) -> str:
    """For how long a value is good."""
    return duration(max(INCIDENTS_S if is_sum(each.metric) else 60, 2 * interval_s))


def muted(interval_s: int) -> str:
    """A client that was throttled when it pushed last is not lost for so long."""
    return duration(max(900, 3 * interval_s))


def is_incident(trouble: Trouble) -> bool:
    """Whether a host or a gateway tells of it, and not the client."""
    return trouble.metrics[JAVA].startswith(OBSERVED)


def is_sum(metric: str) -> bool:
    """Whether its values only grow."""
    return client_metrics()[metric].kind == "sum"


def span_s(trouble: Trouble, interval_s: int) -> float:
    """The window of a trouble."""
    if is_incident(trouble):
        return max(INCIDENTS_S, trouble.over_s)
    return STEPS * step_s(interval_s) if trouble.steps else window_s(interval_s, trouble.over_s)


def series_of(trouble: Trouble, metric: str) -> str:
    """The series that a trouble looks at."""
    return selector(metric, f'{trouble.labels[0]}!~"{trouble.skip}"') if trouble.skip else selector(metric)


def value_of(trouble: Trouble, metric: str, interval_s: int) -> str:
    """The value that a trouble compares, with the labels of the client and those of the trouble."""
    found, agg = series_of(trouble, metric), {"each": "max"}.get(trouble.agg, trouble.agg)
    if is_sum(metric):
        window = duration(span_s(trouble, interval_s))
        added = f"increase({found}[{window}])"
        if trouble.begins_at_first:
            # What a client has lost before its first push is new, too, and so is the first incident.
            began = f"last_over_time({found}[{window}]) unless last_over_time({found}[1d] offset {window})"
            added = f"({began}) or {added}"
        found = added
    return of_instance(agg, found, *sorted(client_metrics()[metric].levels[0] - set(trouble.labels)))


def condition(trouble: Trouble, value: str, interval_s: int) -> str:
    """The whole condition of a trouble with a value."""
    if trouble.keeps:
        return lasting(trouble, interval_s)
    scale = span_s(trouble, interval_s) / trouble.over_s if trouble.over_s and not trouble.per else 1
    found = f"{value}\n{trouble.op} {number(trouble.threshold * scale)}"
    if trouble.steps:
        found += f"\nand {OF_CLIENT} {again_and_again(trouble, interval_s)}"
    found += "".join(also(each, interval_s) for each in trouble.also) + unless(trouble, interval_s)
    return found if trouble.kind is Kind.LOSS else found + LIVES


def also(each: Condition, interval_s: int) -> str:
    """A further condition."""
    found = selector(each.metric)
    if each.over_s:
        found = f"increase({found}[{duration(window_s(interval_s, each.over_s))}])"
    return f"\nand {OF_CLIENT} {found} {each.op} {number(each.threshold)}"


def unless(trouble: Trouble, interval_s: int) -> str:
    """Not while another trouble explains it."""
    return "".join(f"\nunless {OF_CLIENT} {held(each, kept(interval_s, each))}" for each in trouble.unless)


def held(each: Condition, window: str, level: str = "max_over_time") -> str:
    """A condition that has held in a window."""
    function = "increase" if is_sum(each.metric) else level
    return f"{function}({selector(each.metric)}[{window}]) {each.op} {number(each.threshold)}"


def unless_of_group(trouble: Trouble, interval_s: int) -> str:
    """Not while another trouble of a member explains it."""
    found = (held(each, kept(interval_s, each)) for each in trouble.unless)
    return "".join(
        f'\nunless on (group) label_replace({each}, "group", "$1", "group_id", "(.+)")' for each in found
    )


def again_and_again(trouble: Trouble, interval_s: int) -> str:
    """The increase goes on in several steps of the window. The first value of a counter is no increase."""
    series, step = selector(trouble.metrics[JAVA]), step_s(interval_s)
    limit = number(trouble.threshold / STEPS * step / STEP_S)
    grows = f"{series} - {series} offset {duration(step)} > {limit}"
    window = f"{duration(STEPS * step)}:{duration(step)}"
    return f"{of_instance('max', f'count_over_time(({grows})[{window}])')} >= {trouble.steps}"


def lasting(trouble: Trouble, interval_s: int) -> str:
    """Beyond the threshold in most steps of a window. A client that is held back sends no push meanwhile."""
    metric, step = trouble.metrics[JAVA], step_s(interval_s)
    last = f"last_over_time({selector(metric)}[{muted(interval_s)}])"
    beyond = f"{last} {trouble.op} bool {number(trouble.threshold)}"
    steps = f"sum_over_time(({beyond})[{duration(STEPS * step)}:{duration(step)}])"
    least = number(max(1, trouble.for_s // STEP_S))
    ended = f"last_over_time({TERMINATED}[{muted(interval_s)}]) == 1"
    return f"{of_instance('max', steps)}\n>= {least}\nunless {OF_CLIENT} {ended}{unless(trouble, interval_s)}"


def lag_value(trouble: Trouble) -> str:
    """The largest lag of a topic's partitions."""
    return of_instance("max", selector(trouble.metrics[JAVA], deepest=True), "partition")


def lag_condition(trouble: Trouble, interval_s: int) -> str:
    """A lag that shrinks at no push of its window, and is never 0, while its position moves or does not."""
    lag, window = selector(trouble.metrics[JAVA], deepest=True), duration(window_s(interval_s))
    grows = f"{lag} {'>' if trouble.moves else '>='} {lag} offset {window}"
    never_shrinks = f"resets({lag}[{window}]) == 0 and min_over_time({lag}[{window}]) > 0"
    read = of_instance("sum", f"rate({selector(trouble.position, deepest=True)}[{window}])")
    of_topic = "on (client_instance_id, topic)"
    moves = f"> {of_topic} group_left () {number(LEAST_LAG_S)} * ({read} > 0)"
    return (
        f"{of_instance('max', f'{grows} and {never_shrinks}', 'partition')}\n"
        f"{moves if trouble.moves else f'and {of_topic} {read} == 0'}{unless(trouble, interval_s)}\n"
        f"unless on (cluster_name, group_id) {MEASURED}{LIVES}"
    )


def silent(interval_s: int) -> str:
    """Series that have ended without a goodbye, although somebody is heard where they came from.

    A client's series end when it is silent for too long, and also while its host cannot be scraped. By remote
    write nothing tells of the host, so that the others of the same host must be heard, if there are any.
    """
    seen = f"last_over_time({TERMINATED}[{REMEMBERED}])"
    place = "(job, instance)"
    is_alone = f"count by {place} ({seen} == 0) == 1"
    is_heard = f"group by {place} ({TERMINATED}) or on {place} up == 1 or on {place} {is_alone}"
    is_muted = "".join(
        f"\nunless {OF_CLIENT} {held(each, muted(interval_s), 'last_over_time')}" for each in THROTTLED
    )
    return (
        f"{of_instance('max', f'{seen} unless on {place} up == 0 and on {place} ({is_heard})')} == 0\n"
        f"unless {OF_CLIENT} {TERMINATED}\n"
        f"unless {OF_CLIENT} {seen} == 1{is_muted}\n"
        f"unless {OF_CLIENT} last_over_time({selector(LOST)}[{REMEMBERED}])"
    )

"""The figures of an estimate: a sentence for logs and refusals, lines for people, an object for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from odradek.estimate.budgets import APP_KEY, CLIENT_KEY, PRINCIPAL_KEY, Exceeded
from odradek.estimate.estimate import Estimate, Load, ScopeSeries
from odradek.estimate.futures import Basis

PRINCIPALS: Final = 10
"""Lines of principals."""
SCOPES: Final = {PRINCIPAL_KEY: "principal", APP_KEY: "app", CLIENT_KEY: "client instance"}
MINUTE_S: Final = 60
UNITS: Final = ("B", "kB", "MB", "GB", "TB")
PRINCIPAL_WIDTH: Final = 44
BASES: Final = {
    Basis.SEEN: "counted in their pushes",
    Basis.MODELLED: "computed from their nodes, topics and partitions",
    Basis.GUESSED: "assumed to be as many as of similar clients",
}


def sentence(found: Estimate) -> str:
    """The figures in one line, without the budgets."""
    return (
        f"{number(found.changed)} of {number(found.live)} live clients change; "
        f"series {number(found.now.series)} -> {number(found.after.series)}, "
        f"samples/s {number(found.now.samples_per_s)} -> {number(found.after.samples_per_s)}, "
        f"pushes/s {number(found.now.pushes_per_s)} -> {number(found.after.pushes_per_s)}, "
        f"bytes/min {size(found.now.bytes_per_s * MINUTE_S)} -> {size(found.after.bytes_per_s * MINUTE_S)}; "
        f"{bases(found)}"
    )


def excesses(found: Estimate) -> str:
    """The budgets that would be exceeded, in one line."""
    return "; ".join(excess(each) for each in found.exceeded)


def excess(each: Exceeded) -> str:
    """A budget that would be exceeded."""
    theirs = f" of {scope(each)}" if each.scope else ""
    return f"{number(each.series)} series{theirs} exceed {each.budget} = {each.limit}"


def scope(each: Exceeded) -> str:
    """The principal, app or client with the most series, and how many others would exceed their budgets."""
    kind = SCOPES[each.budget]
    others = f" and {number(each.scopes - 1)} more" if each.scopes > 1 else ""
    return f"{kind} {each.scope}{others}"


def bases(found: Estimate) -> str:
    """How much of the result was counted, computed and guessed, in percent of the series that change."""
    total = sum(share.series for share in found.bases.values())
    return ", ".join(
        f"{basis} {percent(share.series, total)}" for basis, share in found.bases.items() if share.clients
    )


def lines(found: Estimate) -> Iterator[str]:
    """The figures for a terminal of 80 columns."""
    yield f"live clients: {number(found.live)}; with another subscription: {number(found.changed)}"
    yield ""
    yield f"{'':22}{'now':>14}{'after':>14}"
    for title, now, after in rows(found.now, found.after):
        yield f"{title:22}{now:>14}{after:>14}"
    yield from principal_lines(found)
    yield from basis_lines(found)
    yield from budget_lines(found)


def principal_lines(found: Estimate) -> Iterator[str]:
    """The principals with the most series."""
    yield ""
    yield f"{'principal':{PRINCIPAL_WIDTH}}{'clients':>9}{'series now':>13}{'after':>13}"
    ordered = sorted(found.principals.items(), key=by_series)
    for name, each in ordered[:PRINCIPALS]:
        yield principal_line(cut(name), each)
    if len(ordered) > PRINCIPALS:
        rest = ScopeSeries()
        for _, each in ordered[PRINCIPALS:]:
            rest.clients += each.clients
            rest.now += each.now
            rest.after += each.after
        yield principal_line(f"({number(len(ordered) - PRINCIPALS)} others)", rest)


def basis_lines(found: Estimate) -> Iterator[str]:
    """How the series were found; nothing if no client changes."""
    if found.changed:
        yield ""
        yield "series of the clients with another subscription"
        total = sum(share.series for share in found.bases.values())
        for basis, share in found.bases.items():
            if share.clients:
                yield f"  {basis:9}{percent(share.series, total):>6}  {BASES[basis]}"


def budget_lines(found: Estimate) -> Iterator[str]:
    """The budgets that would be exceeded."""
    yield ""
    yield "over budget" if found.exceeded else "within all budgets"
    for each in found.exceeded:
        yield f"  {each.budget} = {each.limit}: {number(each.series)} series"
        if each.scope:
            yield f"    of {scope(each)}"


def rows(now: Load, after: Load) -> Iterator[tuple[str, str, str]]:
    """The rows of the table."""
    yield "clients that push", number(now.clients), number(after.clients)
    yield "series", number(now.series), number(after.series)
    yield "series in Prometheus", number(now.in_prometheus), number(after.in_prometheus)
    yield "samples per second", number(now.samples_per_s), number(after.samples_per_s)
    yield "pushes per second", number(now.pushes_per_s), number(after.pushes_per_s)
    yield "bytes per push", size(now.bytes_per_push), size(after.bytes_per_push)
    yield "bytes per minute", size(now.bytes_per_s * MINUTE_S), size(after.bytes_per_s * MINUTE_S)


def by_series(item: tuple[str, ScopeSeries]) -> tuple[int, str]:
    """Sorts the principals with the most series first."""
    return -max(item[1].now, item[1].after), item[0]


def principal_line(name: str, each: ScopeSeries) -> str:
    return f"{name:{PRINCIPAL_WIDTH}}{number(each.clients):>9}{number(each.now):>13}{number(each.after):>13}"


def cut(name: str) -> str:
    """A name that leaves a space in its column."""
    return name if len(name) < PRINCIPAL_WIDTH else f"{name[: PRINCIPAL_WIDTH - 4]}..."


def number(value: float) -> str:
    """A number for people: 1 234 567, 12, 0.35."""
    if value < 10 and not float(value).is_integer():
        return f"{value:.2g}"
    return f"{value:,.0f}".replace(",", " ")


def size(value: float) -> str:
    """A number of bytes for people: 0 B, 21 kB, 1.5 MB."""
    for unit in UNITS:
        if value < 999.5 or unit == UNITS[-1]:
            break
        value /= 1_000
    return f"{value:.1f} {unit}" if value < 9.95 and unit != "B" else f"{value:.0f} {unit}"


def percent(part: int, whole: int) -> str:
    """A share of a total, which may be 0."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def as_object(found: Estimate) -> Mapping[str, Any]:
    """The figures for scripts."""
    return {
        "clients": found.live,
        "changed": found.changed,
        "now": load_object(found.now),
        "after": load_object(found.after),
        "principals": {
            name: {"clients": each.clients, "series_now": each.now, "series_after": each.after}
            for name, each in sorted(found.principals.items(), key=by_series)
        },
        "bases": {
            basis.value: {"clients": share.clients, "series": share.series}
            for basis, share in found.bases.items()
        },
        "exceeded": [each._asdict() for each in found.exceeded],
    }


def load_object(load: Load) -> Mapping[str, float]:
    return {
        "clients": load.clients,
        "series": load.series,
        "prometheus_series": load.in_prometheus,
        "samples_per_second": round(load.samples_per_s, 3),
        "pushes_per_second": round(load.pushes_per_s, 3),
        "bytes_per_push": round(load.bytes_per_push),
        "bytes_per_minute": round(load.bytes_per_s * MINUTE_S),
    }

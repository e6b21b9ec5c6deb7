"""The page of a client: its facts, findings, plots, subscriptions, quotas and series."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek.client.errors import ClientError
from odradek_console.engine.client_entry import State
from odradek_console.figures import FIGURES, IN_TABLES, PUSHED, SEEN
from odradek_console.json_form import JsonRow
from odradek_console.links import client_link, group_link, node_link, programs_link
from odradek_console.reading.applied_quotas import AppliedQuota, applied_quotas
from odradek_console.reading.older_points import Wanted, joined
from odradek_console.reading.told import Told, told_to
from odradek_console.rows import ClientDetail, ClientRow, SeriesRow
from odradek_console.text import age, label_text, readable
from odradek_console.web.client_plots import ClientPlots, Window
from odradek_console.web.console import Console, console_of
from odradek_console.web.render import as_csv, as_json, page, picture, utc
from odradek_console.web.table import BadQuery, Column, Table

Value = TypeVar("Value")
WINDOW: Final = "window"
WINDOWS: Final = {"15m": 900_000, "2h": 7_200_000, "12h": 43_200_000}
OLDER_WINDOWS: Final = {"24h": 86_400_000, "7d": 604_800_000, "30d": 2_592_000_000}
"""Those for which the tables of odradek-spark are needed."""
THROTTLE: Final = "throttle.time"
TOLD_BY: Final = {
    PUSHED: "its own pushes",
    SEEN: "a gateway or a host that observes it",
    IN_TABLES: "the tables, since the console has forgotten it",
}


def unit_of(row: SeriesRow) -> str:
    """The unit of its values: those of a counter are per second."""
    return f"{row.unit}/s" if row.kind == "counter" and row.unit else row.unit


SERIES: Final[Table[SeriesRow]] = Table(
    name="series",
    sort="metric",
    row=SeriesRow,
    columns=(
        Column("metric", "Metric", groups=True),
        Column("labels", "Labels", value=lambda row: label_text(row.labels), groups=True),
        Column("kind", "Kind", groups=True),
        Column("source", "Told by", groups=True),
        Column("unit", "Unit", value=lambda row: unit_of(row), groups=True, shown=False),
        Column("value", "Value", text=lambda row: readable(row.value, unit_of(row)), number=True),
        Column("peers", "Peers", text=lambda row: readable(row.peers, unit_of(row)), number=True),
        Column("help", "Meaning", shown=False),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a cluster, or the error instead of it."""

    told: Told | None
    quotas: list[AppliedQuota] | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedClient(JsonRow):
    """A client in full, with the answers of its cluster."""

    row: ClientDetail
    subscriptions: Told | None
    """None if the cluster does not tell."""
    quotas: tuple[AppliedQuota, ...] | None
    problems: tuple[str, ...]
    """The reasons why the cluster does not tell, or points are missing from the tables."""


def windows_of(console: Console) -> dict[str, int]:
    """The lengths of the windows that a console has, by name."""
    return WINDOWS | (OLDER_WINDOWS if console.tables is not None else {})


def window_of(request: Request) -> str:
    """The parameter ``window``.

    Raises:
        BadQuery: It is none of those.
    """
    found = request.query_params.get(WINDOW, next(iter(WINDOWS)))
    known = windows_of(console_of(request))
    if found not in known:
        reason = f"; {found} needs the tables: --tables" if found in OLDER_WINDOWS else f", not {found!r}"
        raise BadQuery(f"{WINDOW} must be one of {', '.join(known)}{reason}")
    return found


def found_client(request: Request, since_ms: int) -> ClientDetail:
    """The client that a path names: one that the console knows, else one of the tables.

    Raises:
        HTTPException: 404, there is none.
    """
    name, console = request.path_params["instance"], console_of(request)
    detail = console.view.client(name, since_ms)
    if detail is None and console.tables is not None:
        detail = console.tables.client(name)
    if detail is None:
        raise HTTPException(404, f"No client {name} has pushed within the hours that the console has read.")
    return detail


def windowed(request: Request, name: str = "") -> tuple[ClientDetail, Window]:
    """A client with its points in a window, by default in that of the URL.

    The window of a client that is gone ends with its last push.
    """
    console, name = console_of(request), name or window_of(request)
    span_ms = windows_of(console)[name]
    now_ms = console.now_ms()
    detail = found_client(request, now_ms - span_ms)
    end_ms = now_ms
    if detail.row.last_ms < now_ms - span_ms:
        end_ms = detail.row.last_ms + 1  # the window does not have its end
        detail = found_client(request, end_ms - span_ms)
    window = Window(begin_ms=end_ms - span_ms, end_ms=end_ms, scale=console.view.reading().scale)
    is_remembered = name in WINDOWS and IN_TABLES not in detail.row.sources
    if console.tables is None or is_remembered:
        return detail, window
    older = console.tables.ask(wanted(detail, window))
    joint = replace(detail, series=tuple(joined(detail.series, older.series)))
    return joint, replace(window, step_ms=older.step_ms, notes=older.notes)


def wanted(detail: ClientDetail, window: Window) -> Wanted:
    """The older points: those of its client id, unless that has several live instances."""
    row = detail.row
    is_alone = row.client_id and not any(each.state is State.LIVE for each in detail.others)
    return Wanted(
        instance="" if is_alone else row.client_instance_id,
        client_id=row.client_id,
        principal=row.principal,
        begin_ms=window.begin_ms,
        end_ms=window.end_ms,
    )


def asked(console: Console, row: ClientRow) -> Answer:
    """The answers of the cluster about a client. The page is shown without them, too."""
    problems: list[str] = []

    def ask(question: Callable[[], Value]) -> Value | None:
        try:
            return question()
        except ClientError as error:
            problems.append(str(error))
            return None

    told = ask(lambda: told_to(console.cluster.subscriptions(), row))
    quotas = ask(lambda: applied_quotas(console.cluster.quotas(), row.principal, row.client_id, row.address))
    return Answer(told=told, quotas=quotas, problems=tuple(dict.fromkeys(problems)))


def facts(detail: ClientDetail, now_ms: int) -> dict[str, str]:
    """The known facts about the client."""
    row = detail.row
    sizes = [readable(each, "B") for each in (detail.last_bytes, detail.largest_bytes, row.payload_bytes)]
    found = {
        "Client id": row.client_id,
        "Instance": row.client_instance_id,
        "State": f"{row.state}, last push {age(now_ms - row.last_ms)} ago ({utc(row.last_ms)})",
        "First push": utc(row.first_ms),
        "Library": f"{row.software} {row.version}",
        "Principal": row.principal,
        "Team": row.owner,
        "Application": row.app,
        "Group": row.group_id,
        "Address": row.address,
        "Broker": str(row.node_id) if row.node_id >= 0 else "",
        "Cluster": row.cluster_id,
        "Gateway": row.gateway,
        "Told by": ", ".join(TOLD_BY[each] for each in row.sources),
        "Way in": row.source,
        "Pushes": f"{row.pushes}, one every {age(row.interval_ms)}",
        "Sizes": f"last {sizes[0]}, largest {sizes[1]}, all {sizes[2]}" if row.payload_bytes else "",
        "Gaps": f"{row.gaps}, {age(detail.gap_ms)} together" if row.gaps else "",
        "Refused": f"{row.refused}, last {row.last_error} at {utc(detail.last_error_ms)}"
        if row.refused
        else "",
        "Clock": f"{detail.skew_ms / 1000:+.1f} s between the host and the client" if detail.skew_ms else "",
        "Subscription id": str(row.subscription_id),
    }
    return {name: text for name, text in found.items() if text.strip()}


def links(row: ClientRow, console: Console) -> Mapping[str, str]:
    """The pages that facts lead to; empty for those without one."""
    programs = [each.program for each in console.programs.rows() if row.gateway in each.gateways]
    found = {
        "Group": group_link(row.group_id),
        "Broker": node_link(str(row.node_id)),
        "Gateway": programs_link(programs),
    }
    return defaultdict(str, found)


def throttle_times(detail: ClientDetail) -> list[SeriesRow]:
    """The series that tell how much the client is throttled."""
    return [each for each in detail.series if THROTTLE in each.metric]


def show(request: Request) -> Response:
    """The client."""
    return described(request)


def described(
    request: Request, status: int = 200, problem: str = "", typed: Mapping[str, str] | None = None
) -> Response:
    """The page of the client that a path names.

    Args:
        request: The request.
        status: The status of the answer.
        problem: What is wrong with the form of a watch; it is shown beside it.
        typed: The fields of that form.
    """
    console = console_of(request)
    detail, window = windowed(request)
    state = SERIES.state(request.query_params.multi_items(), kept=(WINDOW,))
    answer = asked(console, detail.row)
    plots, path = ClientPlots(detail, window, answer.told), client_link(detail.row.client_instance_id)
    chosen = window_of(request)
    downloads = {
        "csv": f"{path}/series.csv{state.query(page=1)}",
        "json": f"/api/v1{path}/series{state.query()}",
    }
    return page(
        request,
        "client.html",
        status=status,
        problem=problem,
        typed=typed or {},
        detail=detail,
        row=detail.row,
        link=path,
        figure_names=FIGURES,
        facts=facts(detail, console.now_ms()),
        links=links(detail.row, console),
        findings=[
            (each, plots.evidence(number, each)) for number, each in enumerate(detail.findings, start=1)
        ],
        groups=plots.groups(),
        windows=[(each, state.query(kept=((WINDOW, each),)), each == chosen) for each in windows_of(console)],
        window=window,
        answer=answer,
        throttle=throttle_times(detail),
        peers=f"/?app={quote(detail.row.app, safe='')}" if detail.row.app else "",
        table=picture(SERIES, detail.series, state) | downloads,
    )


def api(request: Request) -> Response:
    """The client as JSON, with the points of the window."""
    detail, window = windowed(request)
    answer = asked(console_of(request), detail.row)
    found = DescribedClient(
        row=detail,
        subscriptions=answer.told,
        quotas=None if answer.quotas is None else tuple(answer.quotas),
        problems=(*answer.problems, *window.notes),
    )
    return JSONResponse(found.to_json())


def series(request: Request) -> Response:
    """The series as JSON."""
    state = SERIES.state(request.query_params.multi_items(), kept=(WINDOW,))
    return as_json(SERIES, windowed(request)[0].series, state)


def series_csv(request: Request) -> Response:
    state = SERIES.state(request.query_params.multi_items(), kept=(WINDOW,))
    return as_csv(SERIES, windowed(request)[0].series, state)


# A client id may contain a slash, so a name is a path; what follows it is looked for first.
routes = [
    Route("/clients/{instance:path}/series.csv", series_csv, name="series of a client as CSV"),
    Route("/api/v1/clients/{instance:path}/series", series, name="series of a client as JSON"),
    Route("/api/v1/clients/{instance:path}", api, name="a client as JSON"),
    Route("/clients/{instance:path}", show, name="a client"),
]

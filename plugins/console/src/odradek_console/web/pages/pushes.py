"""The latest pushes of a client, decoded."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek_console.links import client_link
from odradek_console.reading.push_points import PointRow
from odradek_console.reading.pushes import Pushes, PushRow
from odradek_console.rows import ClientDetail
from odradek_console.text import label_text
from odradek_console.web.access import LIVE_HEADER
from odradek_console.web.console import console_of
from odradek_console.web.pages.client import found_client
from odradek_console.web.render import as_csv, page, picture, utc
from odradek_console.web.table import BadQuery, Column, Table

PUSH: Final = "push"
NO_CONTENT: Final = 204


POINTS: Final[Table[PointRow]] = Table(
    name="points",
    sort="metric",
    row=PointRow,
    columns=(
        Column("metric", "Metric", groups=True),
        Column("labels", "Labels", value=lambda row: label_text(row.labels), groups=True),
        Column("type", "Type", groups=True),
        Column("temporality", "Temporality", groups=True),
        Column("value", "Value", text=lambda row: row.text, number=True),
        Column("text", "Values", shown=False),
        Column(
            "start",
            "Since",
            value=lambda row: row.start_ms,
            text=lambda row: utc(row.start_ms)[11:19] if row.start_ms else "-",
            number=True,
        ),
        Column(
            "time",
            "Time",
            value=lambda row: row.time_ms,
            text=lambda row: utc(row.time_ms)[11:19] if row.time_ms else "-",
            number=True,
        ),
        Column("unit", "Unit", shown=False),
        Column("monotonic", "Monotonic", value=lambda row: str(row.monotonic), shown=False),
    ),
)


def pushes_of(request: Request) -> tuple[ClientDetail, Pushes]:
    """The client that a path names, and its pushes."""
    console = console_of(request)
    detail = found_client(request, console.now_ms())
    key = detail.row.client_instance_id
    places = console.view.places(key)
    if places is None or not places.offsets:
        return detail, Pushes(pushes=(), notes=())
    return detail, console.cluster.pushes(places, key)


def chosen(request: Request, pushes: Pushes) -> PushRow | None:
    """The push that the URL names, or the newest; None if there is none.

    Raises:
        BadQuery: The URL names another one.
    """
    name = request.query_params.get(PUSH)
    if name is None:
        return next(iter(pushes.pushes), None)
    for each in pushes.pushes:
        if str(each.offset) == name:
            return each
    raise BadQuery(f"{name!r} is not the offset of one of its {len(pushes.pushes)} latest pushes")


def show(request: Request) -> Response:
    """The pushes, and the points of one. The page does not read the topic again by itself."""
    if LIVE_HEADER in request.headers:
        return Response(status_code=NO_CONTENT)
    state = POINTS.state(request.query_params.multi_items(), kept=(PUSH,))
    detail, pushes = pushes_of(request)
    push, path = chosen(request, pushes), client_link(detail.row.client_instance_id)
    downloads = {"csv": f"{path}/pushes.csv{state.query(page=1)}", "json": f"/api/v1{path}/pushes"}
    return page(
        request,
        "pushes.html",
        row=detail.row,
        link=path,
        pushes=pushes,
        push=push,
        table=picture(POINTS, push.decoded.points if push else (), state) | downloads,
    )


def points_csv(request: Request) -> Response:
    """The points of one push as CSV."""
    state = POINTS.state(request.query_params.multi_items(), kept=(PUSH,))
    push = chosen(request, pushes_of(request)[1])
    return as_csv(POINTS, push.decoded.points if push else (), state)


def api(request: Request) -> Response:
    """The pushes as JSON, with all points."""
    return JSONResponse(pushes_of(request)[1].to_json())


routes = [
    Route("/clients/{instance:path}/pushes.csv", points_csv, name="points of a push as CSV"),
    Route("/clients/{instance:path}/pushes", show, name="pushes of a client"),
    Route("/api/v1/clients/{instance:path}/pushes", api, name="pushes of a client as JSON"),
]

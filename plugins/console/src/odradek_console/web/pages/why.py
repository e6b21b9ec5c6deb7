"""The page that says why a client is slow: where the time of its requests goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek_console.links import client_link
from odradek_console.rows import ClientDetail
from odradek_console.waterfall import StepRow, Waterfall, waterfall
from odradek_console.web.console import console_of
from odradek_console.web.pages.client import Answer, asked, windowed, windows_of
from odradek_console.web.render import page

LONGEST: Final = "7d"
"""The past that is compared, if the tables are there."""


class Bar(NamedTuple):
    """A step on the page, with where its bar begins and ends, in percent of the whole."""

    step: StepRow
    begin: float
    width: float


def why(request: Request) -> tuple[ClientDetail, Answer, Waterfall]:
    """Where the time of the client goes that a path names."""
    console = console_of(request)
    known = list(windows_of(console))
    detail, _ = windowed(request, LONGEST if LONGEST in known else known[-1])
    answer, beside = asked(console, detail.row), console.view.beside(detail.row.client_instance_id)
    if beside is None:  # forgotten a moment ago
        raise HTTPException(404, "The client is no longer known: the first page has those that are.")
    asks_for = answer.told.asks_for if answer.told is not None else lambda metric: False
    return detail, answer, waterfall(detail, beside, console.now_ms(), asks_for)


def bars(steps: Sequence[StepRow]) -> Iterator[Bar]:
    """The steps of a role, each bar where the one before ends."""
    whole, begin = sum(each.value_ms or 0.0 for each in steps), 0.0
    for each in steps:
        width = 100 * (each.value_ms or 0.0) / whole if whole else 0.0
        yield Bar(each, round(begin, 1), round(width, 1))
        begin += width


def show(request: Request) -> Response:
    """The page."""
    detail, answer, found = why(request)
    roles = {each.role: [step for step in found.steps if step.role == each.role] for each in found.steps}
    return page(
        request,
        "why.html",
        detail=detail,
        row=detail.row,
        link=client_link(detail.row.client_instance_id),
        answer=answer,
        found=found,
        roles={role: list(bars(steps)) for role, steps in roles.items()},
        problem="",
        typed={"metrics": ",".join(found.missing)} if found.missing else {},
    )


def api(request: Request) -> Response:
    """The same as JSON."""
    return JSONResponse(why(request)[2].to_json())


routes = [
    Route("/api/v1/clients/{instance:path}/why", api, name="why a client is slow, as JSON"),
    Route("/clients/{instance:path}/why", show, name="why a client is slow"),
]

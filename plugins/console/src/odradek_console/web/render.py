"""Templates, and the three forms of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from odradek.findings.hints import FINDINGS
from odradek.findings.presets import PRESETS, metrics_text
from odradek_console.text import age, label_text, readable, short, sparkline
from odradek_console.web.access import csrf_field
from odradek_console.web.console import Console, console_of
from odradek_console.web.table import Row, State, Table
from odradek_console.web.users import User

FOLDER: Final = Path(__file__).parent
NAVIGATION: Final = (
    ("/", "Clients"),
    ("/groups", "Groups"),
    ("/topics", "Topics"),
    ("/nodes", "Nodes"),
    ("/programs", "Gateways"),
    ("/subscriptions", "Subscriptions"),
    ("/quotas", "Quotas"),
    ("/delivery", "Delivery"),
    ("/upgrades", "Upgrades"),
    ("/host", "Settings"),
)
QUESTIONS: Final = {each.id: each.question for each in FINDINGS}


def utc(time_ms: int) -> str:
    """A time as ``2026-11-23 10:00:00 UTC``."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def environment() -> Environment:
    """The templates. Every text is escaped, and an undefined name is an error."""
    loader = FileSystemLoader(FOLDER / "templates")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    found.lstrip_blocks = True
    found.filters |= {
        "age": age,
        "label_text": label_text,
        "metrics_text": metrics_text,
        "readable": readable,
        "short": short,
        "sparkline": sparkline,
        "utc": utc,
    }
    found.globals |= {"navigation": NAVIGATION, "presets": list(PRESETS), "questions": QUESTIONS}
    return found


TEMPLATES: Final = environment()


def page(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    console = console_of(request)
    user: User | None = getattr(request.state, "user", None)
    common = {
        "path": request.url.path,
        "cluster_name": console.cluster_name,
        "grafana": console.grafana,
        "csrf": partial(csrf_field, request),
        "user": user,
        "may_act": user is not None and user.may_act,
        "may_log_out": console.access.settings.has_page,
        "reading": console.view.reading(),
        "now_ms": console.now_ms(),
    }
    return HTMLResponse(TEMPLATES.get_template(template).render(common | context), status_code=status)


def picture(table: Table[Row], rows: Iterable[Row], state: State) -> dict[str, Any]:
    """A table as ``table.html`` shows it: one page of its rows."""
    asked = table.as_usual(state)
    found = table.select(rows, asked)
    first = (state.page - 1) * state.rows
    chosen = [] if state.group else found[first : first + state.rows]
    return {
        "name": table.name,
        "state": state,
        "columns": table.columns,
        "headings": table.headings(state),
        "groups": table.grouped(found, state) if state.group else [],
        "summaries": table.summaries,
        "chosen": chosen,
        "rows": [table.cells(row) for row in chosen],
        "note": "",
        "total": len(found),
        "first": first,
        "csv": f"/{table.name}.csv{asked.query(page=1)}",
        "json": f"/api/v1/{table.name}{asked.query()}",
    }


def as_json(table: Table[Row], rows: Iterable[Row], state: State) -> JSONResponse:
    """One page of the rows as JSON; or the groups, if the state has them."""
    found = table.select(rows, state)
    if state.group:
        groups = [
            {"value": each.value, "rows": each.rows, **each.summaries} for each in table.grouped(found, state)
        ]
        return JSONResponse({"total": len(found), "group": state.group, "groups": groups})
    first = (state.page - 1) * state.rows
    shown = [row.to_json() for row in found[first : first + state.rows]]
    return JSONResponse({"total": len(found), "page": state.page, table.name: shown})


def as_csv(table: Table[Row], rows: Iterable[Row], state: State) -> Response:
    """All rows that the state chooses as CSV."""
    headers = {"Content-Disposition": f'attachment; filename="{table.name}.csv"'}
    return Response(table.csv(table.select(rows, state)), media_type="text/csv", headers=headers)


def table_page(
    path: str, template: str, table: Table[Row], rows: Callable[[Console], Iterable[Row]]
) -> list[Route]:
    """The routes of a page that shows one table, and of the table as JSON and CSV."""

    def show(request: Request) -> Response:
        state = table.state(request.query_params.multi_items())
        return page(request, template, table=picture(table, rows(console_of(request)), state))

    return [Route(path, show, name=table.name), *table_routes(table, rows)]


def table_routes(table: Table[Row], rows: Callable[[Console], Iterable[Row]]) -> list[Route]:
    """The routes of a table as JSON, ``/api/v1/NAME``, and as CSV, ``/NAME.csv``."""

    def answer(request: Request, form: Callable[[Table[Row], Iterable[Row], State], Response]) -> Response:
        state = table.state(request.query_params.multi_items())
        return form(table, rows(console_of(request)), state)

    def api(request: Request) -> Response:
        return answer(request, as_json)

    def download(request: Request) -> Response:
        return answer(request, as_csv)

    return [
        Route(f"/api/v1/{table.name}", api, name=f"{table.name} as JSON"),
        Route(f"/{table.name}.csv", download, name=f"{table.name} as CSV"),
    ]

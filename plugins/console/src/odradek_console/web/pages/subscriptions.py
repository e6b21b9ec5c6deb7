"""The pages of subscriptions: list, dry run, changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.lease import lease_end_s
from odradek.client.subscriptions import alter_subscription, delete_subscription
from odradek.findings.presets import PRESETS, metrics_text
from odradek_console.cluster_rows import SubscriptionRow
from odradek_console.engine.subscription_history import SubscriptionChange
from odradek_console.json_form import JsonRow
from odradek_console.reach import Reach, reach
from odradek_console.reading.told import DEFAULT_INTERVAL_MS
from odradek_console.rows import ClientRow
from odradek_console.text import age
from odradek_console.web.console import Console, console_of
from odradek_console.web.guard import Form
from odradek_console.web.render import page, table_page, utc
from odradek_console.web.table import BadQuery, Column, Table
from odradek_console.web.users import user_of

KEYS: Final = ("metrics", "interval.ms", "match")
LONGEST: Final = 20_000
"""Characters of a field: a list of metrics may be long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachRow(JsonRow):
    """A subscription and the known clients that it selects."""

    row: SubscriptionRow
    clients: int
    series: int
    pushes_per_s: float
    left_ms: int | None
    """The time that a lease still has; None for a subscription that stays."""


def edit_link(name: str) -> str:
    """The page that changes a subscription."""
    return f"/subscriptions/edit?{urlencode({'name': name})}"


def end_text(each: ReachRow) -> str:
    """The time that a lease still has; empty for a subscription that stays."""
    return "" if each.left_ms is None else f"in {age(each.left_ms)}"


SUBSCRIPTIONS: Final[Table[ReachRow]] = Table(
    name="subscriptions",
    sort="-series",
    row=ReachRow,
    columns=(
        Column("name", "Name", value=lambda each: each.row.name, link=lambda each: edit_link(each.row.name)),
        Column("metrics", "Metrics", value=lambda each: metrics_text(each.row.metrics) or "none"),
        Column(
            "interval_ms",
            "Interval",
            value=lambda each: each.row.interval_ms,
            text=lambda each: "default" if each.row.interval_ms is None else age(each.row.interval_ms),
            number=True,
        ),
        Column("match", "Match", value=lambda each: each.row.match or "all clients"),
        Column("clients", "Clients", number=True),
        Column("series", "Series", number=True),
        Column("pushes_per_s", "Pushes/s", text=lambda each: f"{each.pushes_per_s:.3g}", number=True),
        Column("ends", "Ends", value=lambda each: each.row.lease_end_s, text=end_text, number=True),
    ),
)

CHANGES: Final[Table[SubscriptionChange]] = Table(
    name="changes",
    sort="-time",
    row=SubscriptionChange,
    columns=(
        Column(
            "time", "Seen", value=lambda each: each.time_ms, text=lambda each: utc(each.time_ms), number=True
        ),
        Column("name", "Subscription", groups=True),
        Column("act", "Change", groups=True),
        Column("text", "Properties"),
        Column("user", "User", text=lambda each: each.user or "not by this console", groups=True),
    ),
)


def reach_rows(console: Console) -> list[ReachRow]:
    """The subscriptions with their reach."""
    stored = console.cluster.subscriptions()

    def made() -> list[Reach]:
        clients = [row for row in console.view.clients() if row.state != "gone"]
        return [reach_of(console, clients, each) for each in stored]

    reaches = console.reaches.of(stored, made)
    return [reach_row(console, row, found) for row, found in zip(stored, reaches, strict=True)]


def reach_of(console: Console, clients: Sequence[ClientRow], row: SubscriptionRow) -> Reach:
    """The reach of a subscription among some clients."""
    interval_ms = row.interval_ms or DEFAULT_INTERVAL_MS
    return reach(console.view, clients, row.metrics, row.match, interval_ms)


def reach_row(console: Console, row: SubscriptionRow, found: Reach) -> ReachRow:
    return ReachRow(
        row=row,
        clients=found.clients,
        series=found.series,
        pushes_per_s=found.pushes_per_s,
        left_ms=None if row.lease_end_s is None else row.lease_end_s * 1000 - console.now_ms(),
    )


def edit(request: Request) -> Response:
    """A form, and the dry run of its fields, which are in the URL."""
    given = {key: value for key, value in request.query_params.items() if key in ("name", *KEYS)}
    return edited(request, given, tried="metrics" in given)


def edited(request: Request, given: Mapping[str, str], *, tried: bool, problem: str = "") -> Response:
    """The form with fields, and their dry run."""
    console = console_of(request)
    name = given.get("name", "").strip()
    stored = next((each for each in console.cluster.subscriptions() if each.name == name), None)
    shown = {key: given.get(key, value) for key, value in properties_of(stored).items()}
    found: Reach | None = None
    if tried and not problem:
        try:
            found = dry_run(console, name, shown)
        except (ClientError, BadQuery) as error:
            problem = str(error)
    return page(
        request,
        "subscription.html",
        status=400 if problem else 200,
        name=name,
        stored=stored,
        lease_end_s=lease_end_s(name),
        fields=shown,
        tried=found,
        problem=problem,
    )


def properties_of(row: SubscriptionRow | None) -> dict[str, str]:
    """The properties of a subscription as texts; those of a new one."""
    if row is None:
        return {"metrics": "", "interval.ms": "", "match": ""}
    interval = "" if row.interval_ms is None else str(row.interval_ms)
    return {"metrics": row.metrics, "interval.ms": interval, "match": row.match}


def dry_run(console: Console, name: str, fields: Mapping[str, str]) -> Reach:
    """Let the cluster check the fields, and find what they select.

    Raises:
        ClientError: The cluster refuses them.
        BadQuery: There is no name, or a field is too long.
    """
    wanted = wanted_of(name, fields)
    with console.connect() as admin:
        alter_subscription(admin, name, wanted, validate_only=True)
    clients = [row for row in console.view.clients() if row.state != "gone"]
    interval_ms = int(wanted["interval.ms"] or DEFAULT_INTERVAL_MS)
    return reach(console.view, clients, wanted["metrics"] or "", wanted["match"] or "", interval_ms)


def wanted_of(name: str, fields: Mapping[str, str]) -> dict[str, str | None]:
    """The properties to set; None resets one. Metrics may be the name of a preset, which has an interval.

    Raises:
        BadQuery: There is no name, or a field is too long.
    """
    if not name:
        raise BadQuery("a subscription needs a name")
    for key in KEYS:
        if len(fields.get(key, "")) > LONGEST:
            raise BadQuery(f"{key} has more than {LONGEST} characters")
    given = {key: fields.get(key, "").strip() or None for key in KEYS}
    preset = PRESETS.get(given["metrics"] or "")
    if preset is None:
        return given
    beside = {key: value for key, value in given.items() if value and key != "metrics"}
    return given | preset.properties | beside


@contextmanager
def administered(request: Request, act: str, name: str) -> Iterator[AdminClient]:
    """A client that changes a subscription, with a line in the audit log and in the history."""
    console, user = console_of(request), user_of(request)
    with (
        console.audit.act(user, act, name),
        console.history.changed_by(name, user.name),
        console.connect() as admin,
    ):
        yield admin


def save(request: Request) -> Response:
    """Create or change a subscription."""
    form: Form = request.state.form
    console, name = console_of(request), form.get("name", "").strip()
    try:
        wanted = wanted_of(name, form)
        with administered(request, "subscription.alter", name) as admin:
            alter_subscription(admin, name, wanted)
    except (ClientError, BadQuery) as error:
        return edited(request, form, tried=False, problem=str(error))
    return changed(console)


def delete(request: Request) -> Response:
    """Delete a subscription."""
    name = request.state.form.get("name", "").strip()
    if not name:
        raise BadQuery("a subscription needs a name")
    with administered(request, "subscription.delete", name) as admin:
        delete_subscription(admin, name)
    return changed(console_of(request))


def changed(console: Console) -> Response:
    """Show the list, read again."""
    console.cluster.forget()
    console.watch.poke()
    return RedirectResponse("/subscriptions", status_code=303)


routes = [
    Route("/subscriptions/edit", edit),
    Route("/subscriptions/save", save, methods=["POST"]),
    Route("/subscriptions/delete", delete, methods=["POST"]),
    *table_page("/subscriptions", "subscriptions.html", SUBSCRIPTIONS, reach_rows),
    *table_page("/subscriptions/changes", "changes.html", CHANGES, lambda console: console.history.changes()),
]

"""The pages of topics: who writes and reads which one, and what nobody uses."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek.client.errors import ClientError
from odradek_console.figures import RATE
from odradek_console.links import client_link, group_link, topic_link
from odradek_console.text import age
from odradek_console.topic_pictures import TopicDetail, TopicRow, Usage, UseRow
from odradek_console.web.console import Console, console_of
from odradek_console.web.render import page, picture, table_routes, utc
from odradek_console.web.table import Column, Table, measure

RANKS: Final = {each: rank for rank, each in enumerate(Usage)}
TOPICS: Final[Table[TopicRow]] = Table(
    name="topics",
    sort="topic",
    row=TopicRow,
    columns=(
        Column("topic", "Topic", link=lambda row: topic_link(row.topic)),
        Column(
            "usage", "Use", value=lambda row: str(row.usage), by=lambda row: RANKS[row.usage], groups=True
        ),
        Column("writers", "Writers", number=True),
        Column("readers", "Readers", number=True),
        measure("written", "Written", RATE),
        measure("read", "Read", RATE),
        Column("groups", "Groups", groups=True),
        Column("abandoned", "Abandoned groups", groups=True),
        measure("lag", "Lag", ""),
        Column(
            "last",
            "Last record",
            value=lambda row: row.last_ms,
            text=lambda row: "-" if row.last_ms is None else utc(row.last_ms),
            number=True,
        ),
        Column("partitions", "Partitions", number=True, shown=False),
    ),
)
USES: Final[Table[UseRow]] = Table(
    name="uses",
    sort="-use",
    row=UseRow,
    columns=(
        Column("client_id", "Client", link=lambda row: client_link(row.client_instance_id)),
        Column("use", "Use", groups=True),
        measure("rate", "Records", RATE),
        Column("state", "State", groups=True),
        Column("group_id", "Group", link=lambda row: group_link(row.group_id), groups=True),
        Column("app", "Application", groups=True),
        Column("owner", "Team", groups=True),
        Column("library", "Library", groups=True),
        Column("source", "Told by", groups=True),
        Column("topic", "Topic", groups=True, shown=False),
    ),
)


def details(console: Console) -> tuple[list[TopicDetail], str]:
    """All topics, and why the cluster does not tell its own ones; empty if it does."""
    try:
        listed, problem = console.cluster.topics(), ""
    except ClientError as error:
        listed, problem = None, str(error)
    return console.view.topics(listed), problem


def topics(request: Request) -> Response:
    """All topics, by name."""
    found, problem = details(console_of(request))
    state = TOPICS.state(request.query_params.multi_items())
    table = picture(TOPICS, [each.row for each in found], state)
    is_measured = any(each.row.groups for each in found)
    return page(request, "topics.html", table=table, problem=problem, is_measured=is_measured)


def found_topic(request: Request) -> TopicDetail:
    """The topic that a path names.

    Raises:
        HTTPException: 404, nobody knows it.
    """
    name = request.path_params["topic"]
    for each in details(console_of(request))[0]:
        if each.row.topic == name:
            return each
    raise HTTPException(404, f"Neither a client, nor a group, nor the cluster tells of a topic {name}.")


def topic(request: Request) -> Response:
    """One topic; the query is that of the clients that use it."""
    detail, state = found_topic(request), USES.state(request.query_params.multi_items())
    downloads = {"csv": "", "json": f"/api/v1{topic_link(detail.row.topic)}"}
    last_ms, now_ms = detail.row.last_ms, console_of(request).now_ms()
    return page(
        request,
        "topic.html",
        row=detail.row,
        ago="" if last_ms is None else age(now_ms - last_ms),
        group_link=group_link,
        table=picture(USES, detail.uses, state) | downloads,
    )


def api(request: Request) -> Response:
    """One topic as JSON."""
    return JSONResponse(found_topic(request).to_json())


routes = [
    Route("/topics", topics),
    *table_routes(TOPICS, lambda console: [each.row for each in details(console)[0]]),
    Route("/api/v1/topics/{topic}", api, name="a topic as JSON"),
    Route("/topics/{topic}", topic, name="a topic"),
]

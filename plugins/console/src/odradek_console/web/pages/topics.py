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
        Column(
            id="topic",
            heading="Topic",
            value=lambda row: row.topic,
            link=lambda row: topic_link(row.topic),
        ),
        Column(
            id="usage",
            heading="Use",
            value=lambda row: str(row.usage),
            by=lambda row: RANKS[row.usage],
            groups=True,
        ),
        Column(id="writers", heading="Writers", value=lambda row: row.writers, number=True),
        Column(id="readers", heading="Readers", value=lambda row: row.readers, number=True),
        measure("written", "Written", RATE, lambda row: row.written),
        measure("read", "Read", RATE, lambda row: row.read),
        Column(id="groups", heading="Groups", value=lambda row: row.groups, groups=True),
        Column(id="abandoned", heading="Abandoned groups", value=lambda row: row.abandoned, groups=True),
        measure("lag", "Lag", "", lambda row: row.lag),
        Column(
            id="last",
            heading="Last record",
            value=lambda row: row.last_ms,
            text=lambda row: "-" if row.last_ms is None else utc(row.last_ms),
            number=True,
        ),
        Column(
            id="partitions", heading="Partitions", value=lambda row: row.partitions, number=True, shown=False
        ),
    ),
)
USES: Final[Table[UseRow]] = Table(
    name="uses",
    sort="-use",
    row=UseRow,
    columns=(
        Column(
            id="client_id",
            heading="Client",
            value=lambda row: row.client_id,
            link=lambda row: client_link(row.client_instance_id),
        ),
        Column(id="use", heading="Use", value=lambda row: row.use, groups=True),
        measure("rate", "Records", RATE, lambda row: row.rate),
        Column(id="state", heading="State", value=lambda row: row.state, groups=True),
        Column(
            id="group_id",
            heading="Group",
            value=lambda row: row.group_id,
            link=lambda row: group_link(row.group_id),
            groups=True,
        ),
        Column(id="app", heading="Application", value=lambda row: row.app, groups=True),
        Column(id="owner", heading="Team", value=lambda row: row.owner, groups=True),
        Column(id="library", heading="Library", value=lambda row: row.library, groups=True),
        Column(id="source", heading="Told by", value=lambda row: row.source, groups=True),
        Column(id="topic", heading="Topic", value=lambda row: row.topic, groups=True, shown=False),
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

"""The pages of consumer groups: members, assignment, lag by partition, and rebalances."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek_console.group_pictures import GroupDetail, GroupRow, MemberRow, PartitionRow
from odradek_console.links import client_link, group_link
from odradek_console.web.console import console_of
from odradek_console.web.render import page, picture, table_routes
from odradek_console.web.table import Column, State, Table, measure

GROUPS: Final[Table[GroupRow]] = Table(
    name="groups",
    sort="-lag_s",
    row=GroupRow,
    columns=(
        Column("group_id", "Group", link=lambda row: group_link(row.group_id)),
        Column("type", "Type", groups=True),
        Column("state", "State", groups=True),
        Column("findings", "Findings", groups=True),
        measure("lag", "Lag", ""),
        measure("lag_s", "Behind", "s"),
        Column("progress", "Progress", groups=True),
        Column("members", "Members", number=True),
        Column("live", "Live clients", number=True),
        Column("silent", "Silent", number=True),
        Column("gone", "Gone", number=True),
        measure("rebalance_ms", "In rebalances, last hour", "ms"),
    ),
)
MEMBERS: Final[Table[MemberRow]] = Table(
    name="members",
    sort="-lag_s",
    row=MemberRow,
    columns=(
        Column(
            "client_id",
            "Client",
            value=lambda row: row.client_id or "(none)",
            link=lambda row: client_link(row.client_instance_id),
        ),
        Column("state", "State"),
        Column("findings", "Findings"),
        measure("lag", "Lag", ""),
        replace(
            measure("lag_s", "Behind", "s"),
            by=lambda row: (row.lag_s or -1.0, row.lag or -1.0),  # a lag whose time is not known counts, too
        ),
        Column("partitions", "Partitions"),
        measure("rebalances", "Rebalances", ""),
        measure("rebalance_ms", "In rebalances", "ms"),
        Column("address", "Address"),
    ),
)
PARTITIONS: Final[Table[PartitionRow]] = Table(
    name="partitions",
    sort="-lag",
    row=PartitionRow,
    columns=(
        Column("topic", "Topic", groups=True),
        Column("partition", "Partition", number=True),
        measure("lag", "Lag", ""),
        measure("lag_s", "Behind", "s"),
        Column(
            "offset",
            "Committed",
            text=lambda row: "-" if row.offset is None else f"{row.offset:.0f}",
            number=True,
        ),
        Column("member", "Member", groups=True),
        Column("address", "Address", groups=True),
    ),
)


def groups(request: Request) -> Response:
    """All groups, the one that is furthest behind first."""
    view, state = console_of(request).view, GROUPS.state(request.query_params.multi_items())
    rows = view.groups()
    is_measured = any(row.members is not None for row in rows)
    return page(request, "groups.html", table=picture(GROUPS, rows, state), is_measured=is_measured)


def found_group(request: Request) -> GroupDetail:
    """The group that a path names.

    Raises:
        HTTPException: 404, nobody knows it.
    """
    name = request.path_params["group"]
    detail = console_of(request).view.group(name)
    if detail is None:
        raise HTTPException(404, f"Neither a client nor the lag of groups tells of a group {name}.")
    return detail


def group(request: Request) -> Response:
    """One group; the query is that of its partitions."""
    detail, state = found_group(request), PARTITIONS.state(request.query_params.multi_items())
    link = group_link(detail.row.group_id)
    downloads = {"json": f"/api/v1{link}", "csv": ""}
    return page(
        request,
        "group.html",
        row=detail.row,
        members=picture(MEMBERS, detail.members_in_full, State(sort="lag_s", descending=True)),
        partitions=picture(PARTITIONS, detail.partitions, state) | downloads,
    )


def api(request: Request) -> Response:
    """One group as JSON."""
    return JSONResponse(found_group(request).to_json())


routes = [
    Route("/groups", groups),
    *table_routes(GROUPS, lambda console: console.view.groups()),
    Route("/api/v1/groups/{group:path}", api, name="a group as JSON"),
    Route("/groups/{group:path}", group, name="a group"),
]

"""The authorizer decides as Apache Kafka's StandardAuthorizer did, case by case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin.authorizer import AclOperation, AclPermission, Action, PatternType, ResourceType
from odradek.plugin.context import RequestContext
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.authorizer_settings import is_true, principals
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.testing import request_context
from odradek.wire.host_address import java_host_address

TABLE: dict[str, Any] = json.loads((Path(__file__).parent / "acl_verdicts.json").read_text())


def acl(
    permission: str, operation: str, kind: str, pattern: str, name: str, principal: str, host: str
) -> Acl:
    return Acl(
        ResourcePattern(ResourceType[kind], name, PatternType[pattern]),
        AclEntry(principal, host, AclOperation[operation], AclPermission[permission]),
    )


def caller(principal: str, host: str) -> RequestContext:
    return request_context(principal=principal, client_address=java_host_address(host))


VERDICTS = [row for row in TABLE["verdicts"] if row["verdict"] != "config error"]
BAD_SETTINGS = [row for row in TABLE["verdicts"] if row["verdict"] == "config error"]


@pytest.mark.parametrize("row", VERDICTS, ids=lambda row: str(row["id"]))
def test_the_authorizer_decides_as_kafka(row: dict[str, Any]) -> None:
    authorizer = StandardAuthorizer(
        principals(row.get("super.users", "")), is_true(row.get("allow.everyone.if.no.acl.found", ""))
    )
    authorizer.add([acl(*fields) for fields in row["acls"]])
    principal, host, operation, kind, name = row["ask"]
    context, operation, kind = caller(principal, host), AclOperation[operation], ResourceType[kind]

    if name is None:
        decision = authorizer.authorize_by_resource_type(context, operation, kind)
    else:
        (decision,) = authorizer.authorize(context, [Action(operation, kind, name)])

    assert decision.is_allowed == (row["verdict"] == "allow")
    assert decision.rule


@pytest.mark.parametrize("row", BAD_SETTINGS, ids=lambda row: str(row["id"]))
def test_what_stops_kafka_stops_the_host(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=row["super.users"]):
        principals(row["super.users"])


def test_the_table_is_complete() -> None:
    assert len(TABLE["verdicts"]) == 102

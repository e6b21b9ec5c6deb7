"""What members of groups do and are answered: who comes and goes, why, and which errors they get."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from odradek.findings.incidents import GROUP_ERRORS, GROUP_JOINS, GROUP_LEAVES, GROUP_REJOINS
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.incidents import Incidents
from odradek.wire.api_names import api_name
from odradek.wire.error_code import RETRIABLE, ErrorCode, error_name

JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
CONSUMER_GROUP_HEARTBEAT: Final = 68
OF_MEMBERS: Final = frozenset({JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT})
EXPULSIONS: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)
"""After them a member joins again, which is counted: all do so when their coordinator has restarted."""
USUAL: Final = (
    frozenset({ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS})
    | EXPULSIONS
    | RETRIABLE
)
"""Answers of the life of every member, and those after which it tries again."""
FIRST_JOIN: Final = "need to re-join with the given member-id"
"""The reason of a Java consumer's second JoinGroup."""
VARIABLE: Final = re.compile(r"[(:'\d].*", re.DOTALL)
"""The part of a reason that differs each time: ids, versions, metadata."""
MOST_OF_REASON: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a member asks of its coordinator."""

    api_key: int
    group_id: str
    member_id: str
    epoch: int = 0
    """Member epoch of a ConsumerGroupHeartbeat: 0 joins, below 0 leaves."""
    reason: str | None = None


def note_member(
    incidents: Incidents,
    key: ClientKey,
    asked: Asked,
    code: int,
    connection: Hashable,
    connection_id: str = "",
) -> None:
    """Count what a member has asked and was answered, if it is more than a heartbeat.

    Args:
        incidents: Count it.
        key: The client.
        asked: Its request.
        code: The error code of the answer.
        connection: By which it asked; `StuckMembers.closed` is told of its end.
        connection_id: See `Incidents.add`.
    """
    labels = {"group": asked.group_id}
    metric = moved(asked)
    if code not in USUAL:
        metric = GROUP_ERRORS
        labels |= {"api": api_name(asked.api_key), "error": error_name(code)}
    elif metric is None or code not in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
        return
    elif metric != GROUP_JOINS:
        labels["reason"] = VARIABLE.sub("", asked.reason or "").strip()[:MOST_OF_REASON]
    if metric == GROUP_LEAVES:
        incidents.stuck.left(connection, key, asked.group_id, labels["reason"], connection_id)
    elif metric != GROUP_ERRORS:
        incidents.stuck.joined(connection, asked.group_id)
    incidents.add(key, metric, labels, connection_id=connection_id)


def moved(asked: Asked) -> str | None:
    """The metric of a request that changes a group; None for a heartbeat."""
    if asked.api_key == CONSUMER_GROUP_HEARTBEAT and asked.epoch <= 0:
        return GROUP_LEAVES if asked.epoch < 0 else GROUP_JOINS
    if asked.api_key == LEAVE_GROUP:
        return GROUP_LEAVES
    if asked.api_key != JOIN_GROUP:
        return None
    if not asked.member_id:
        return GROUP_JOINS
    return GROUP_REJOINS if asked.reason and not asked.reason.startswith(FIRST_JOIN) else None

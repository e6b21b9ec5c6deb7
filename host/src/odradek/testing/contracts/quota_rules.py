"""The rules for a quota callback. The host calls it on its loop, for every request of every client."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any, Final

from odradek.plugin import ClientQuotaCallback, ClientQuotaEntity, ClientQuotaType
from odradek.testing.contracts.observing import (
    beside_another,
    called,
    closes_unused,
    opened,
    shown,
    taken_by,
    within_budget,
)
from odradek.testing.contracts.rule import RuleBroken, rules
from odradek.testing.contracts.samples import LONG_TEXT, ODD_TEXT
from odradek.testing.contracts.subject import BUDGET_MS, Capability, Kind, Subject

ROUND = 50
PRODUCE = ClientQuotaType.PRODUCE
SEPARATORS = ":/,;=|-_. \n\0"
QUOTA = 4_321.0


def tags_of(callback: ClientQuotaCallback, user: str, client_id: str, kind: ClientQuotaType = PRODUCE) -> Any:
    """Call ``quota_metric_tags`` and return its result, which may be of any type."""
    return called("quota_metric_tags", callback.quota_metric_tags, kind, user, client_id)


def limit_of(callback: ClientQuotaCallback, tags: Any, kind: ClientQuotaType = PRODUCE) -> Any:
    """Call ``quota_limit`` and return its result, which may be of any type."""
    return called("quota_limit", callback.quota_limit, kind, tags)


def ask(callback: ClientQuotaCallback, names: tuple[str, str]) -> None:
    """Make all calls that the host makes for a request, for each quota type."""
    for kind in ClientQuotaType:
        limit_of(callback, tags_of(callback, *names, kind), kind)
        called("quota_reset_required", callback.quota_reset_required, kind)


async def returns_in_time(subject: Subject) -> None:
    users = [f"user-{number}" for number in range(ROUND)]
    async with opened(subject) as callback:

        def call(user: str) -> None:
            callback.quota_limit(PRODUCE, callback.quota_metric_tags(PRODUCE, user, "app"))

        await within_budget("the calls for a request", call, lambda: users, subject.budget_ms or BUDGET_MS)


async def changes_nothing(subject: Subject) -> None:
    async with opened(subject) as callback:
        tags = dict(tags_of(callback, "alice", "app"))
        before = dict(tags)
        limit_of(callback, tags)
        if tags != before:
            raise RuleBroken(f"quota_limit changed the tags from {before} to {tags}")


async def sees_through_spoofed(subject: Subject) -> None:
    async with opened(subject) as callback:
        for mark in SEPARATORS:
            alice, other = "alice", f"alice{mark}bob"
            if tags_of(callback, alice, "app") == tags_of(callback, other, "app"):
                continue  # both users share a budget, so client ids make no difference
            names = ("app", f"bob{mark}app", f"{mark}app", "")
            for mine, theirs in product(names, names):
                if tags_of(callback, alice, mine) == tags_of(callback, other, theirs):
                    pair = f"{mine!r} of {alice!r} and {theirs!r} of {other!r}"
                    raise RuleBroken(f"clients of users with different budgets share one: {pair}")


async def accounts_for_updates(subject: Subject) -> None:
    entity = ClientQuotaEntity(user="alice")
    async with opened(subject) as callback:
        tags = tags_of(callback, "alice", "app")
        before = limit_of(callback, tags)
        called("update_quota", callback.update_quota, PRODUCE, entity, QUOTA)
        if (limit := limit_of(callback, tags)) != QUOTA:
            raise RuleBroken(f"quota_limit returned {limit} after the quota of alice was set to {QUOTA:g}")
        called("remove_quota", callback.remove_quota, PRODUCE, entity)
        if (limit := limit_of(callback, tags)) != before:
            raise RuleBroken(
                f"quota_limit returned {limit} after the quota of alice was removed, expected {before}"
            )


async def answers_as_agreed(subject: Subject) -> None:
    async with opened(subject) as callback:
        for kind in ClientQuotaType:
            tags = tags_of(callback, "alice", "app", kind)
            if not isinstance(tags, Mapping):
                raise RuleBroken(
                    f"quota_metric_tags returned {type(tags).__name__}, expected a mapping of strings"
                )
            for name, value in tags.items():
                if not (isinstance(name, str) and isinstance(value, str)):
                    raise RuleBroken(
                        f"quota_metric_tags returned {shown(name)}: {shown(value)}, expected strings"
                    )
            refuse_limit(limit_of(callback, tags, kind))


def refuse_limit(limit: object) -> None:
    """Check that a limit is None or a finite number of at least 0.

    Raises:
        RuleBroken: It is not.
    """
    if limit is None or (isinstance(limit, int | float) and math.isfinite(limit) and limit >= 0):
        return
    raise RuleBroken(f"quota_limit returned {shown(limit)}, expected None or a number of at least 0")


QUOTA_RULES: Final = rules(
    Kind.QUOTA_CALLBACK,
    {
        "returns-in-time": (returns_in_time,),
        "changes-nothing": (changes_nothing,),
        "closes-unused": (closes_unused, Capability.CLOSE),
        "starts-twice": (beside_another(ask, ("alice", "app")),),
        "empty": (taken_by(ask, ("ANONYMOUS", ""), ("", "")),),
        "huge": (taken_by(ask, (LONG_TEXT, LONG_TEXT)),),
        "undecodable": (taken_by(ask, (ODD_TEXT, ODD_TEXT)),),
        "spoofed": (sees_through_spoofed,),
        "accounts": (accounts_for_updates, Capability.UPDATES),
        "answers-as-agreed": (answers_as_agreed,),
    },
)

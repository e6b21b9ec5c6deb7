"""The causes of episodes: what those clients have in common that have the same trouble at the same time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any, Final, NamedTuple

from odradek.findings.hints import EXPLAINS
from odradek.findings.troubles import Kind
from odradek_spark.jobs.life import INSTANCE, labels_of
from odradek_spark.jobs.rules import Rule

LEAST: Final = 3
"""Clients in the same trouble that have a cause in common, if they are more than half."""
LEAST_MS: Final = 60_000
BROKER: Final = "broker"
Episode = dict[str, Any]
"""A row of the table ``anomalies``."""


class Key(NamedTuple):
    """Something that a client has in common with others."""

    place: int
    """The smaller one is the cause if several are."""
    key: str
    value: str


def with_causes(
    found: Sequence[Episode],
    keys: Mapping[str, Sequence[Key]],
    clients: Mapping[Key, int],
    rules: Sequence[Rule],
) -> list[Episode]:
    """Episodes with their ``cause``: ``behind: group billing``, or None.

    A trouble that means something only if most clients of a broker have it is left out for the others. What
    a cause explains of its clients has the same cause.

    Args:
        found: The episodes of all clients; they get their cause.
        keys: By client that is not gone: what it may have in common with others.
        clients: How many clients have a key; those that fewer than `LEAST` have may be missing.
        rules: The rules.
    """
    shared = {each.id for each in rules if each.trouble is not None and each.trouble.kind is Kind.SHARED}
    alike: defaultdict[tuple[str, Key], list[Episode]] = defaultdict(list)
    for each in found:
        for key in keys.get(each[INSTANCE], ()):
            is_its = key.value == broker_of(each) if key.key == BROKER else each["rule"] not in shared
            if is_its and clients.get(key, 0) >= LEAST:
                alike[each["rule"], key].append(each)
    # in the order of their places: the first cause of an episode is the one
    causes: dict[int, str] = {}
    for (rule, key), episodes in sorted(alike.items(), key=lambda group: group[0][1].place):
        for each, together in near(episodes):
            if together >= LEAST and 2 * together > clients[key]:
                causes.setdefault(id(each), f"{rule}: {key.key} {key.value}")
    for each in found:
        each["cause"] = causes.get(id(each), each["cause"])
    explain(found)
    return [each for each in found if each["rule"] not in shared or each["cause"] is not None]


def near(episodes: Sequence[Episode]) -> Iterator[tuple[Episode, int]]:
    """Episodes, and how many clients have one that began at nearly the same time."""
    span = timedelta(milliseconds=max(LEAST_MS, *(2 * each["push_interval_ms"] for each in episodes)))
    in_order = sorted(episodes, key=itemgetter("started_ts"))
    clients: Counter[str] = Counter()
    first = end = 0
    for each in in_order:
        while end < len(in_order) and in_order[end]["started_ts"] <= each["started_ts"] + span:
            clients[in_order[end][INSTANCE]] += 1
            end += 1
        while in_order[first]["started_ts"] < each["started_ts"] - span:
            gone = in_order[first][INSTANCE]
            clients[gone] -= 1
            if not clients[gone]:
                del clients[gone]
            first += 1
        yield each, len(clients)


def explain(found: Sequence[Episode]) -> None:
    """Set the cause of episodes that another one of the same client explains."""
    causes: dict[tuple[str, str], tuple[str, str]] = {}
    for each in found:
        if each["rule"] in EXPLAINS and each["cause"] is not None:
            client = each[INSTANCE], each["rule"]
            told = broker_of(each) or "", each["cause"]
            causes[client] = max(told, causes.get(client, told))
    for each in found:
        for cause, consequences in EXPLAINS.items():
            broker, text = causes.get((each[INSTANCE], cause), ("", ""))
            if text and each["rule"] in consequences and broker_of(each) in (None, broker):
                each["cause"] = text


def broker_of(episode: Episode) -> str | None:
    labels = labels_of(episode["attrs"])
    number = labels.get("node.id")
    return labels.get("node_id", None if number is None else f"node-{number}")

"""One cause of many clients' troubles: what those have in common that are in the same one."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from odradek.findings.hints import EXPLAINS
from odradek_console.engine.client_entry import State
from odradek_console.json_form import JsonRow
from odradek_console.rows import ClientRow, TroubleRow

LEAST: Final = 3
"""Clients in the same trouble that have a cause in common, if they are more than half."""
LEAST_MS: Final = 60_000
KEPT_MS: Final = 120_000
"""A cause explains for so long what is left of it."""
Key = tuple[str, str]
OF_CLIENT: Final[Mapping[str, Callable[[ClientRow], str]]] = {
    "group": lambda row: row.group_id,
    "gateway": lambda row: row.gateway,
    "principal": lambda row: row.principal,
    "address": lambda row: row.address,
    "library": lambda row: f"{row.software} {row.version}",
}
BROKER: Final = "broker"
KEYS: Final = (BROKER, *OF_CLIENT)
"""What clients may have in common. The first that fits is the cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause(JsonRow):
    """A trouble that most clients of a broker, a group or the like have."""

    id: str
    """The trouble."""
    key: str
    """What the clients have in common: ``broker``, ``group``, ``gateway``, ``principal``, ``address``,
    ``library``."""
    value: str
    """Which one."""
    clients: tuple[str, ...]
    """The instance ids of those in trouble."""
    well: int
    """How many others have it in common and are not in trouble."""
    since_ms: int

    @property
    def text(self) -> str:
        """For people: ``behind: group billing, 7 of 8 clients``."""
        count = len(self.clients)
        return f"{self.id}: {self.key} {self.value}, {count} of {count + self.well} clients"


class Causes:
    """The causes now, and those of a moment ago that still explain something: clients do not recover at once.

    Any thread may ask.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[tuple[str, str, str], tuple[Cause, int]] = {}
        """By trouble, key and value: the cause, and when it was seen last."""

    def at(self, rows: Sequence[ClientRow], now_ms: int) -> list[Cause]:
        """The causes of what is wrong with some clients.

        Args:
            rows: All clients.
            now_ms: Epoch milliseconds.
        """
        found = {(each.id, each.key, each.value): each for each in causes_of(rows)}
        sick = {(row.client_instance_id, each.id) for row in rows for each in row.troubles}
        with self.lock:
            before = {
                name: (cause, seen_ms)
                for name, (cause, seen_ms) in self.kept.items()
                if name not in found and now_ms - seen_ms < KEPT_MS and explains(cause, sick)
            }
            self.kept = before | {name: (each, now_ms) for name, each in found.items()}
        return [*found.values(), *[cause for cause, _ in before.values()]]


def explains(cause: Cause, sick: set[tuple[str, str]]) -> bool:
    """Whether one of its clients still has a trouble that it explains."""
    names = (cause.id, *EXPLAINS.get(cause.id, ()))
    return any((instance, name) in sick for instance in cause.clients for name in names)


def causes_of(rows: Sequence[ClientRow]) -> list[Cause]:
    """The causes of what is wrong with some clients, that with the most clients first.

    Args:
        rows: All clients.
    """
    waiting: dict[str, list[tuple[ClientRow, TroubleRow]]] = defaultdict(list)
    for row in rows:
        for trouble in row.troubles:
            waiting[trouble.id].append((row, trouble))
    there = [row for row in rows if row.state is not State.GONE]

    @cache
    def everyone(key: str) -> Counter[str]:
        return Counter(value for row in there for value in values_of(row, key))

    found = [cause for told in waiting.values() if len(told) >= LEAST for cause in shared(told, everyone)]
    explained = {(name, each.key, each.value) for each in found for name in EXPLAINS.get(each.id, ())}
    first = [each for each in found if (each.id, each.key, each.value) not in explained]
    return sorted(first, key=lambda each: -len(each.clients))


def shared(
    told: list[tuple[ClientRow, TroubleRow]], everyone: Callable[[str], Counter[str]]
) -> Iterator[Cause]:
    """The causes of one trouble. A client has one of them.

    Args:
        told: The clients in trouble.
        everyone: By what clients may have in common: how many that are not gone have it, by value.
    """
    explained: set[str] = set()
    for key in KEYS:
        by_value: dict[str, dict[str, tuple[ClientRow, TroubleRow]]] = defaultdict(dict)
        for row, trouble in told:
            value = trouble.broker if key == BROKER else "" if trouble.is_shared else OF_CLIENT[key](row)
            if value and row.client_instance_id not in explained:
                by_value[value][row.client_instance_id] = row, trouble
        for value, clients in by_value.items():
            together = begun_together(list(clients.values()))
            if len(together) >= LEAST and 2 * len(together) > everyone(key)[value]:
                ids = tuple(row.client_instance_id for row, _ in together)
                explained.update(ids)
                yield Cause(
                    id=together[0][1].id,
                    key=key,
                    value=value,
                    clients=ids,
                    well=max(0, everyone(key)[value] - len(ids)),
                    since_ms=min(trouble.since_ms for _, trouble in together),
                )


def begun_together(clients: list[tuple[ClientRow, TroubleRow]]) -> list[tuple[ClientRow, TroubleRow]]:
    """The most clients whose troubles began within two push intervals."""
    ordered = sorted(clients, key=lambda each: each[1].since_ms)
    window_ms = max(LEAST_MS, *(2 * row.interval_ms for row, _ in clients))
    best: list[tuple[ClientRow, TroubleRow]] = []
    begin = 0
    for end, (_, trouble) in enumerate(ordered, 1):
        while trouble.since_ms - ordered[begin][1].since_ms > window_ms:
            begin += 1
        if end - begin > len(best):
            best = ordered[begin:end]
    return best


def values_of(row: ClientRow, key: str) -> tuple[str, ...]:
    """The values by which a client may be like others."""
    return row.brokers if key == BROKER else (OF_CLIENT[key](row),)


def told(rows: Iterable[ClientRow], causes: Sequence[Cause]) -> list[ClientRow]:
    """The rows without the findings that a cause explains; they name the cause instead."""
    by_client: dict[str, list[Cause]] = defaultdict(list)
    for cause in causes:
        for instance in cause.clients:
            by_client[instance].append(cause)
    return [explained(row, by_client[row.client_instance_id]) if by_client else row for row in rows]


def explained(row: ClientRow, causes: Sequence[Cause]) -> ClientRow:
    if not causes:
        return row
    hidden = {name for cause in causes for name in (cause.id, *EXPLAINS.get(cause.id, ()))}
    findings = tuple(each for each in row.findings if each not in hidden)
    return replace(row, findings=findings, causes=tuple(cause.text for cause in causes))

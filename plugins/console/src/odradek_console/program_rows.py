"""Rows of gateways, hosts and their destinations, and what is wrong with them in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from odradek_console.json_form import JsonRow
from odradek_console.text import some_of

UP: Final = "up"
NOT_ASKED: Final = "not asked yet"
MOST_NAMED: Final = 5
"""Programs or destinations in a sentence."""


class Trouble(StrEnum):
    """The kinds of trouble of a gateway or a host."""

    DOWN = "down"
    LOST = "lost"
    """It is up, but has lost a destination."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow(JsonRow):
    """A gateway or a host. What it has not told is None or empty."""

    program: str
    """The URL of its metrics; empty for a gateway that only its clients name."""
    name: str
    """``gateway.name``, else the name of its machine; its address until it has answered."""
    kind: str
    """``gateway``, ``host``, or ``forwarder``: ``odradek forward``."""
    state: str
    """``up``, or what is wrong."""
    version: str = ""
    uptime_s: float | None = None
    memory_bytes: float | None = None
    """Of all its processes."""
    connections: float | None = None
    connections_limit: float | None = None
    held: float | None = None
    """The used share of the memory for requests, answers or pairs, whichever is fullest."""
    switch: str = ""
    """The step of a gateway's kill switch, ``full`` for none."""
    lost: tuple[str, ...] = ()
    """Its destinations that are lost."""
    waiting: float | None = None
    """Pushes for all destinations."""
    gateways: tuple[str, ...] = ()
    """How its clients name it, a name for each worker; empty for a host."""
    clients: int | None = None
    """Live ones behind a gateway, or behind all of its name: clients tell no more of it."""
    namesakes: tuple[str, ...] = ()
    """The URLs of other programs with its name, or with that of one of its workers."""

    @property
    def who(self) -> str:
        """Its name, with its URL if others have the same."""
        return f"{self.name} ({self.program})" if self.namesakes else self.name

    @property
    def is_shared(self) -> bool:
        """Whether its clients are counted with those of others of its name."""
        return bool(self.gateways and self.namesakes)

    @property
    def trouble(self) -> Trouble | None:
        """Its trouble; None if it has none."""
        if self.program and self.state not in (UP, NOT_ASKED):
            return Trouble.DOWN
        return Trouble.LOST if self.lost else None

    @property
    def problem(self) -> str:
        """The trouble of the program in one sentence; empty if it has none."""
        who = f"{self.kind} {self.who}".lstrip()
        if self.trouble is Trouble.DOWN:
            return f"{who}: {self.state}"
        return f"{who} has lost {some_of(self.lost, MOST_NAMED)}" if self.lost else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationRow(JsonRow):
    """A destination of a program."""

    program: str
    """The URL of its metrics."""
    name: str
    destination: str
    health: str
    """``well``, or ``lost`` if it fails, or takes nothing while pushes wait."""
    still_s: float | None
    """For how long; None if it is well."""
    error: str
    """The last one while it fails."""
    waiting: float
    per_s: float | None
    """Pushes that it takes now."""
    done_s: float | None
    """The time until none waits, as it goes now; None if they do not get fewer."""
    delivered: float
    """Pushes since the start of the program."""
    given_up: float


def namesakes(row: ProgramRow, named: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Other programs with a name of one, of those that each name belongs to."""
    alike = [url for name in row.gateways or (row.name,) for url in named[name]]
    return tuple(url for url in dict.fromkeys(alike) if url != row.program)


def problems(rows: Iterable[ProgramRow]) -> dict[Trouble, list[ProgramRow]]:
    """The programs by what is wrong with them."""
    found: dict[Trouble, list[ProgramRow]] = {}
    for row in rows:
        if row.trouble is not None:
            found.setdefault(row.trouble, []).append(row)
    return found


def problem_of(rows: Sequence[ProgramRow]) -> str:
    """The trouble that some programs have alike, in one sentence: how many they are, and some of them."""
    if len(rows) == 1:
        return rows[0].problem
    kinds, who = {each.kind for each in rows}, some_of([each.who for each in rows], MOST_NAMED)
    (kind, *others) = kinds
    some = f"{len(rows)} {f'{kind}s' if kind and not others else 'gateways and hosts'}"
    if rows[0].trouble is Trouble.DOWN:
        return f"{some} are down: {who}"
    alike = sorted(set.intersection(*(set(each.lost) for each in rows)))
    return f"{some} have lost {some_of(alike, MOST_NAMED) or 'destinations'}: {who}"

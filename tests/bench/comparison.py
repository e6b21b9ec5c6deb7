"""A figure of odradek beside that of a peer in the same run, and whether it reaches its goal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bench.harness import MISSED, NOT_MEASURED, verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Bounds of a cost, or of its ratio to a peer's."""

    who: str = ""
    """The server with the cost, if odradek has several."""
    peer: str = ""
    """Empty: the cost itself is compared."""
    most: float = math.inf
    least: float = 0.0

    def __str__(self) -> str:
        bounds = {"≤": self.most, "≥": self.least}
        return " and ".join(
            f"{sign} {float(f'{bound:.4g}'):,.10g}" for sign, bound in bounds.items() if 0 < bound < math.inf
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One line of the table."""

    row: str
    unit: str
    ours: float
    peer: str = ""
    theirs: float = math.nan
    goal: Goal | None = None

    @property
    def ratio(self) -> float:
        """To the peer's figure; NaN if one of both was not measured."""
        return self.ours / self.theirs if self.theirs > 0 else math.nan

    @property
    def verdict(self) -> str:
        """Empty without a goal."""
        if self.goal is None:
            return ""
        found = self.ratio if self.peer else self.ours
        return verdict(found, self.goal.most, least=self.goal.least)

    @property
    def is_open(self) -> bool:
        """Whether there is a goal that was not reached."""
        return self.verdict in (MISSED, NOT_MEASURED)

    def __str__(self) -> str:
        """For the print-out of a bench."""
        ours = f"{self.row}: {figure(self.ours)} {self.unit}"
        beside = f", to {self.peer} {figure(self.ratio)}" if self.peer else ""
        goal = "" if self.goal is None else f", goal {self.goal}"
        return f"{self.verdict or 'measured'}: {ours}{beside}{goal}"

    @property
    def cells(self) -> tuple[str, ...]:
        """For the table: row, odradek, peer, ratio, goal, verdict."""
        ours = f"{figure(self.ours)} {self.unit}"
        theirs = f"{self.peer}: {figure(self.theirs)} {self.unit}" if self.peer else ""
        goal = "" if self.goal is None else f"{self.goal}{'' if self.peer else f' {self.unit}'}"
        return self.row, ours, theirs, figure(self.ratio) if self.peer else "", goal, self.verdict


def figure(value: float) -> str:
    """A cost or a ratio with three digits, without an exponent."""
    if not 0 < value < math.inf:
        return NOT_MEASURED
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}"


def compared(
    row: str, unit: str, costs: Mapping[str, float], ours: Iterable[str], goals: Iterable[Goal] = ()
) -> Iterator[Comparison]:
    """The lines of a row: each of ``ours`` that ran beside each peer that ran, and with each goal of its own.

    Args:
        row: Its name.
        unit: Of the costs.
        costs: By server; those that did not run are missing.
        ours: The servers that are odradek; the others are peers.
        goals: Of the first one, unless they name another one.
    """
    own = [name for name in ours if name in costs]
    peers = [name for name in costs if name not in own]
    wanted = {(goal.who or own[0], goal.peer): goal for goal in goals} if own else {}
    for name in own:
        title = row if name == own[0] else f"{row}, {name.removeprefix('odradek, ')}"
        if (goal := wanted.get((name, ""))) is not None:
            yield Comparison(row=title, unit=unit, ours=costs[name], goal=goal)
        for peer in peers:
            goal = wanted.get((name, peer))
            yield Comparison(row=title, unit=unit, ours=costs[name], peer=peer, theirs=costs[peer], goal=goal)

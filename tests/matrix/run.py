"""Live some cells in one place at once, and tell what has rung."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from matrix.hurry import FACTOR
from matrix.lives import TOLD_S, Scene
from matrix.place import Place
from matrix.programs import Program
from matrix.table import LIVES, Cell
from matrix.watch import OUTLETS, SEEN, Ring
from odradek.findings.troubles import BY_ID

BETWEEN_S: Final = 0.5
"""Between the begins of two lives: forty clients that start at once are late for that reason."""
TAIL_S: Final = 80.0
"""After the end of a life: who has closed must not be taken for dead."""


def told_s(life: str, outlet: str) -> float:
    """In how many seconds an outlet must tell a sick life: a rule also waits for its ``for``, hurried."""
    waits_s = max((BY_ID[each].for_s for each in LIVES[life].rings if each in BY_ID), default=0.0)
    return TOLD_S + (0.0 if outlet == "console" else waits_s / FACTOR)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has rung in a cell, and when: seconds since its trouble began, or since its begin."""

    cell: Cell
    rang: dict[Ring, list[float]]
    failure: str = ""
    """Why the life could not be lived."""

    def ids(self, outlet: str) -> dict[str, float]:
        """The findings of an outlet, with the second at which each began."""
        found: dict[str, float] = {}
        for ring, times in self.rang.items():
            if ring.outlet == outlet and ring.id != SEEN:
                found[ring.id] = min(times[0], found.get(ring.id, times[0]))
        return found

    @property
    def unseen(self) -> list[str]:
        """The outlets that have never heard of a client of this life."""
        seen = {ring.outlet for ring in self.rang if ring.id == SEEN}
        return [outlet for outlet in OUTLETS if outlet not in seen]

    def is_right(self, outlet: str) -> bool:
        """Whether an outlet told what it had to, in time, and nothing else."""
        wanted, found = LIVES[self.cell.life].rings, self.ids(outlet)
        if self.failure:
            return False
        if wanted:
            latest_s = told_s(self.cell.life, outlet)
            return len(found) == 1 and found.keys() <= wanted and max(found.values()) <= latest_s
        return not found and outlet not in self.unseen


@dataclass
class Programs:
    """The processes of clients: one for each language, and those of clients that are killed."""

    commands: Mapping[str, Sequence[str]]
    shared: dict[str, Program] = field(default_factory=dict)
    alone: list[Program] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, language: str, alone: bool) -> Program:
        with self.lock:
            if alone:
                self.alone.append(Program(self.commands[language]))
                return self.alone[-1]
            if language not in self.shared:
                self.shared[language] = Program(self.commands[language])
            return self.shared[language]


@contextmanager
def programs(commands: Mapping[str, Sequence[str]]) -> Iterator[Programs]:
    """Processes of clients, stopped at the end."""
    found = Programs(commands)
    try:
        yield found
    finally:
        for each in (*found.shared.values(), *found.alone):
            each.stop()


def lived(
    place: Place,
    cells: Sequence[Cell],
    programs: Programs,
    tail_s: float = TAIL_S,
    sick_tail_s: float = TAIL_S,
) -> list[Outcome]:
    """Live them side by side, and watch each for some seconds after its end."""
    scenes = [Scene(each.name, each.kind, place, programs) for each in cells]
    scenes[0].is_first = True
    together = LIVES[cells[0].life].apart
    for cell, scene in zip(cells, scenes, strict=True):
        scene.told_s = max(told_s(cell.life, outlet) for outlet in OUTLETS)
    with ThreadPoolExecutor(len(cells)) as pool:
        begins_s = [0.0 if together else number * BETWEEN_S for number in range(len(cells))]
        failures = list(pool.map(live, cells, scenes, begins_s))
    ends_s = [
        scene.ended_s + (sick_tail_s if LIVES[cell.life].rings else tail_s)
        for cell, scene in zip(cells, scenes, strict=True)
    ]
    time.sleep(max(0.0, max(ends_s) - time.monotonic()))
    outcomes = []
    for cell, scene, failure in zip(cells, scenes, failures, strict=True):
        since_s = scene.sick_s or scene.begin_s
        rang = place.watch.of(cell.name)
        if LIVES[cell.life].apart and LIVES[cell.life].rings:
            rang |= place.watch.of_nodes()
        times = {ring: [each - since_s for each in times] for ring, times in rang.items()}
        outcomes.append(Outcome(cell, times, failure))
    return outcomes


def live(cell: Cell, scene: Scene, wait_s: float) -> str:
    """Live one cell after a time; what went wrong, if its life was another one."""
    life = LIVES[cell.life]
    time.sleep(wait_s)
    scene.begin_s = time.monotonic()
    try:
        scene.place.create_topic(scene.topic)
        scene.feed(on=life.fed and cell.kind.consumes)
        life.body(scene)
    except Exception as error:  # noqa: BLE001
        return repr(error)
    finally:
        scene.feed(on=False)
        scene.close()
        scene.ended_s = time.monotonic()
    return ""

"""Fifty mixed clients live through deploys, restarts and rebalances, and then three of them fall sick.

    PYTHONPATH=tests python -m matrix.fleet --way gateway --events 50

Prints what has rung: nothing before, and exactly three things after.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from matrix.clients import commands
from matrix.lives import DOWN_S, KINDS, TOLD_S, Scene
from matrix.place import WAYS, Place, place
from matrix.run import TAIL_S, Programs, programs
from matrix.watch import SEEN, Ring

CONSUMERS: Final = 4
PRODUCERS: Final = 3
"""Members of each application: eight kinds of consumers and six of producers are fifty clients."""
PAUSE_S: Final = 2.0
SETTLE_S: Final = 15.0
SHOWN: Final = 5


def started(kind_number: int, place: Place, programs: Programs) -> Scene:
    """An application with all its members."""
    kind = KINDS[kind_number]
    scene = Scene(f"fleet-{kind.name.replace(' ', '-')}", kind, place, programs)
    place.create_topic(scene.topic)
    scene.feed(on=kind.consumes)
    for _ in range(CONSUMERS if kind.consumes else PRODUCERS):
        scene.start()
    return scene


def deploy(scene: Scene) -> None:
    """Replace all members, one after another."""
    for old in scene.members[:]:
        old.close()
        scene.members.remove(old)
        scene.start()
        scene.live(PAUSE_S)


def scale(scene: Scene) -> None:
    """One more for a while."""
    more = scene.start()
    scene.live(2 * PAUSE_S)
    more.close()
    scene.members.remove(more)


def restart(scene: Scene) -> None:
    """Restart the host, or the gateway before it."""
    scene.place.restart(random.choice([each for each in WAYS if each in scene.place.programs]), DOWN_S)
    scene.live(SETTLE_S)


ACTS: Final[dict[Callable[[Scene], None], int]] = {deploy: 6, scale: 3, restart: 1}
"""What happens, and how often in ten."""


def fall_sick(scenes: Sequence[Scene]) -> None:
    """Three of different applications: a slow one, a killed one, a throttled one."""
    by_name = {each.kind.name: each for each in scenes}
    for member in by_name["java consumer"].members:
        member.change(work_ms=1_000)
    killed = by_name["librdkafka consumer"].start(alone=True)
    producer = by_name["java producer"]
    producer.place.limit(f"{producer.cell}.sick", producer_byte_rate=5_000.0)
    producer.start(name="sick", rate=50, size=500)
    time.sleep(PAUSE_S)
    killed.kill()


def rung(place: Place, since_s: float) -> set[Ring]:
    return {
        ring for ring, times in dict(place.watch.seen).items() if ring.id != SEEN and times[-1] >= since_s
    }


def lines(title: str, rings: set[Ring]) -> Iterator[str]:
    """How many clients or groups ring, by outlet and finding, with the names of some."""
    yield f"{title}: {len(rings)}"
    for what, some in sorted(Counter((ring.outlet, ring.id) for ring in rings).items()):
        names = sorted(
            {ring.subject[0] or ring.subject[1] for ring in rings if (ring.outlet, ring.id) == what}
        )
        yield f"  {' '.join(what)}: {some}, {', '.join(names[:SHOWN])}"


def main() -> int:
    """Live; the exit status is 1 if something rang in the healthy part."""
    parser = argparse.ArgumentParser(prog="python -m matrix.fleet")
    parser.add_argument("--way", choices=WAYS, default="host")
    parser.add_argument("--events", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random.seed(given.seed)
    with (
        tempfile.TemporaryDirectory() as temporary,
        place(given.way, Path(temporary) / given.way) as where,
        programs(commands()) as clients,
    ):
        with ThreadPoolExecutor(len(KINDS)) as pool:
            scenes = list(pool.map(lambda number: started(number, where, clients), range(len(KINDS))))
        time.sleep(SETTLE_S)
        for number in range(given.events):
            (act,) = random.choices(list(ACTS), list(ACTS.values()))
            print(number, act.__name__, (scene := random.choice(scenes)).cell, file=sys.stderr, flush=True)
            act(scene)
        time.sleep(TAIL_S)
        healthy = rung(where, 0)
        print("\n".join(lines(f"{given.events} events", healthy)))
        sick_s = time.monotonic()
        fall_sick(scenes)
        time.sleep(TOLD_S)
        print("\n".join(lines("three sick clients", rung(where, sick_s))))
    return bool(healthy)


if __name__ == "__main__":
    sys.exit(main())

"""The lives of the matrix: of healthy ones nothing may ring, of sick ones one thing must."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from matrix.hurry import FACTOR
from matrix.place import SESSION_MS, Place
from matrix.programs import Program
from matrix.watch import OUTLETS, SEEN

TOLD_S: Final = 75.0
"""A sick life is told within this time: a minute, and a little. A rule also waits for its ``for``."""
SEEN_S: Final = 60.0
DOWN_S: Final = 3.0
FROZEN_S: Final = 0.2
"""A producer has sent records in this time."""
WELL_S: Final = 12.0
"""A throttled client sends again after this time: quotas have eleven windows of a second."""
POLLED: Final = 50
"""Records of a poll: three seconds of a slow application, as 500 are half a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A client library with a role."""

    name: str
    program: str
    """``java``, ``streams``, ``python`` or ``go``."""
    role: str
    settings: dict[str, object] = field(default_factory=dict)

    @property
    def consumes(self) -> bool:
        return self.role != "producer"


def both(name: str, program: str, **settings: object) -> list[Kind]:
    return [
        Kind(name=f"{name} {role}", program=program, role=role, settings=settings)
        for role in ("consumer", "producer")
    ]


KINDS: Final = (
    *both("java", "java"),
    Kind(name="java-848 consumer", program="java", role="consumer", settings={"group__protocol": "consumer"}),
    Kind(name="java streams", program="streams", role="streams"),
    *both("java-observed", "java", enable__metrics__push="false"),
    *both("librdkafka", "python", kind="librdkafka"),
    *both("franz-go", "go"),
    *both("aiokafka", "python", kind="aiokafka"),
    *both("kafka-python", "python", kind="kafka-python"),
)


@dataclass
class Member:
    """One client of a life."""

    name: str
    program: Program
    failed: bool = False

    def change(self, **settings: object) -> None:
        self.program.say("set", self.name, **settings)

    def close(self) -> None:
        """Close it properly, and wait until it has."""
        self.program.say("close", self.name)
        self.program.wait(self.name)

    def kill(self) -> None:
        self.program.kill()

    @property
    def has_ended(self) -> bool:
        """Whether it has given up by itself."""
        return self.failed or self.program.is_over(self.name)


class Scene:
    """What a life has: a place, a kind of client, names of its own.

    Args:
        cell: The name of the cell; clients, group and topic begin with it and a dot.
        programs: Starts a process of clients, or gives the one that all share.
    """

    def __init__(self, cell: str, kind: Kind, place: Place, programs: Callable[[str, bool], Program]) -> None:
        self.cell, self.kind, self.place, self.programs = cell, kind, place, programs
        self.topic = self.group = f"{cell}.all"
        self.numbers = count(1)
        self.members: list[Member] = []
        self.is_first = False
        """Whether it changes the place, where several lives wait for the same change."""
        self.sick_s: float | None = None
        """When the trouble began."""
        self.begin_s = self.ended_s = 0.0
        self.told_s = TOLD_S
        """A sick life goes on until it was told everywhere, for at most so long."""

    def start(self, *, alone: bool = False, name: str = "", **settings: object) -> Member:
        """Start a client and wait until it runs; ``alone`` in a process that can be killed."""
        number = next(self.numbers)
        member = Member(f"{self.cell}.{number}", self.programs(self.kind.program, alone))
        given: dict[str, object] = {
            "role": self.kind.role,
            "topic": self.topic,
            "bootstrap__servers": self.place.bootstrap,
            "client__id": f"{self.cell}.{name or number}",
        }
        if self.kind.consumes:
            given |= {"group": self.group}
            given |= self.timing()
        if self.kind.program in ("java", "streams"):
            given["metrics__sample__window__ms"] = 30_000 // FACTOR
        member.program.say("start", member.name, **(given | self.kind.settings | settings))
        member.failed = member.program.wait(member.name).startswith("failed")
        self.members.append(member)
        return member

    def timing(self) -> dict[str, object]:
        """Sessions of six seconds; with KIP-848 the broker says how long they are."""
        auto: dict[str, object] = {} if self.kind.role == "streams" else {"auto__commit__interval__ms": 1_000}
        if "group__protocol" in self.kind.settings:
            return auto
        return auto | {"session__timeout__ms": SESSION_MS, "heartbeat__interval__ms": SESSION_MS // 4}

    def live(self, seconds: float) -> None:
        time.sleep(seconds)

    def feed(self, *, on: bool = True, rate: int = 20) -> None:
        """Let records come to the topic, some per second, or end that."""
        if on:
            self.place.feeder.fed[self.topic] = rate // 20
        else:
            self.place.feeder.fed.pop(self.topic, None)

    def sick(self) -> None:
        self.sick_s = time.monotonic()

    @property
    def is_told(self) -> bool:
        """Whether all outlets have told it, or the time for it is over."""
        assert self.sick_s is not None
        told = {ring.outlet for ring in self.place.watch.of(self.cell) if ring.id != SEEN}
        return told >= set(OUTLETS) or time.monotonic() - self.sick_s > self.told_s

    def until_seen(self) -> None:
        """Go on until all outlets know a client: of one that dies before, nobody can tell.

        Raises:
            TimeoutError: They do not know it in time.
        """
        end_s = time.monotonic() + SEEN_S
        while not {ring.outlet for ring in self.place.watch.of(self.cell) if ring.id == SEEN} >= set(OUTLETS):
            if time.monotonic() > end_s:
                raise TimeoutError(f"no outlet knew the client after {SEEN_S:g} s")
            time.sleep(1)

    def until_told(self) -> None:
        """Go on until it is told, and a little longer."""
        while not self.is_told:
            time.sleep(1)
        time.sleep(3)

    def close(self) -> None:
        for member in self.members:
            if member.program.process.poll() is None:
                member.program.say("close", member.name)


def start_alone(scene: Scene) -> None:
    scene.start()
    scene.live(15)


def idle(scene: Scene) -> None:
    scene.start(rate=0)
    scene.live(30)


def quiet_topic(scene: Scene) -> None:
    scene.start()
    scene.live(8)
    scene.feed(on=False)
    scene.live(25)


def rolling_deploy(scene: Scene) -> None:
    old = [scene.start() for _ in range(3)]
    scene.live(8)
    for each in old:
        each.close()
        scene.start()
        scene.live(3)
    scene.live(5)


def scaling(scene: Scene) -> None:
    scene.start()
    scene.live(6)
    more = [scene.start() for _ in range(2)]
    scene.live(8)
    for each in more:
        each.close()
    scene.live(6)


def normal_close(scene: Scene) -> None:
    member = scene.start()
    scene.live(10)
    member.close()


def short_job(scene: Scene) -> None:
    for _ in range(2):
        member = scene.start()
        scene.live(3)
        member.close()
        scene.live(5)


def catching_up(scene: Scene) -> None:
    scene.place.feeder.fill(scene.topic, 100_000)
    scene.start()
    scene.live(20)


def idle_producer(scene: Scene) -> None:
    scene.start(rate=0.1)
    scene.live(30)


def producer_closes(scene: Scene) -> None:
    member = scene.start()
    scene.live(10)
    member.close()


def subscription_changes(scene: Scene) -> None:
    scene.start()
    scene.live(8)
    for metrics in ("org.apache.kafka.", "*"):
        if scene.is_first:
            scene.place.subscribe(metrics)
        scene.live(10)


def restarts(program: str) -> Callable[[Scene], None]:
    def restart(scene: Scene) -> None:
        scene.start()
        scene.live(10)
        if scene.is_first:  # the place is restarted once, for all
            scene.place.restart(program, DOWN_S)
        scene.live(25)

    return restart


def slow_application(scene: Scene) -> None:
    member = scene.start(max__poll__records=POLLED)
    scene.live(5)
    scene.feed(rate=400)
    member.change(work_ms=62)
    scene.sick()
    scene.until_told()


def stuck(scene: Scene) -> None:
    member = scene.start(max__poll__interval__ms=SESSION_MS + 1_000)
    scene.live(12)
    member.change(work_ms=120_000)
    scene.sick()
    scene.until_told()


def killed(scene: Scene) -> None:
    member = scene.start(alone=True)
    scene.until_seen()
    scene.live(8)
    member.kill()
    scene.sick()
    scene.until_told()


def killed_in_flight(scene: Scene) -> None:
    member = scene.start(alone=True, rate=300, size=10_000)
    scene.until_seen()
    scene.live(8)
    with scene.place.frozen():
        scene.live(FROZEN_S)
        member.kill()
    scene.sick()
    scene.until_told()


def throttled_produce(scene: Scene) -> None:
    scene.place.limit(f"{scene.cell}.1", producer_byte_rate=5_000.0)
    scene.start(rate=50, size=500)
    scene.sick()
    scene.until_told()
    scene.place.limit(f"{scene.cell}.1", producer_byte_rate=None)
    scene.live(WELL_S)


def throttled_fetch(scene: Scene) -> None:
    fetching = f"{scene.cell}.1" + "-StreamThread-1-consumer" * (scene.kind.role == "streams")
    scene.place.limit(fetching, consumer_byte_rate=20_000.0)
    scene.place.feeder.fill(scene.topic, 20_000, 1_000)
    scene.start()
    scene.sick()
    scene.until_told()
    scene.place.limit(fetching, consumer_byte_rate=None)
    scene.live(WELL_S)


def wrong_password(scene: Scene) -> None:
    scene.sick()
    while not scene.is_told:
        member = scene.start(
            name="wrong",
            bootstrap__servers=scene.place.login,
            security__protocol="SASL_PLAINTEXT",
            sasl__mechanism="PLAIN",
            sasl__username=scene.cell,
            sasl__password="wrong",
        )
        while not (scene.is_told or member.has_ended):  # many programs end, and are started again
            scene.live(1)


def too_large(scene: Scene) -> None:
    scene.start(rate=2, size=2_000_000, max__request__size=5_000_000)
    scene.sick()
    scene.until_told()


def topic_absent(scene: Scene) -> None:
    scene.topic = f"{scene.cell}.absent"
    scene.start()
    scene.sick()
    scene.until_told()


def joins_and_leaves(scene: Scene) -> None:
    scene.start()
    scene.live(3)
    scene.sick()
    while not scene.is_told:
        member = scene.start(name="restless")
        scene.live(1.5)
        member.close()


def slow_broker(scene: Scene) -> None:
    scene.start()
    scene.live(8)
    scene.sick()
    if scene.is_first and scene.place.proxy is not None:
        scene.place.proxy.delay_s = 1.0
    scene.live(45)
    if scene.is_first and scene.place.proxy is not None:
        scene.place.proxy.delay_s = 0.0
    scene.live(2)


def one_client_id(scene: Scene) -> None:
    for _ in range(2):
        scene.start(name="same")
    scene.live(30)

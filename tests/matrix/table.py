"""The matrix: each life, the kinds of clients that live it, where, and what may ring."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from matrix import lives
from matrix.lives import KINDS, Kind, Scene
from matrix.place import WAYS

BEHIND: Final = frozenset({"behind", "group-behind"})
STALLED: Final = frozenset({"stalled", "group-stalled", "stuck"})
LOST: Final = frozenset({"lost", "silent"})
LOGINS: Final = frozenset(
    {"failed-logins", "producer-failed-authentication", "consumer-failed-authentication"}
)
LOSS: Final = frozenset({"record-errors", "topic-refusals", "unknown-topic"})
PRODUCE_QUOTA: Final = frozenset({"throttled", "throttled-produce"})
FETCH_QUOTA: Final = frozenset({"throttled", "throttled-fetch"})
STORM: Final = frozenset({"rebalance-storm", "comes-and-goes"})
SILENCE: Final = frozenset[str]()


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One row."""

    body: Callable[[Scene], None]
    of: str = "both"
    """``consumers``, ``producers`` or ``both``."""
    rings: frozenset[str] = SILENCE
    """The findings of which exactly one must ring; none for a healthy life."""
    fed: bool = True
    ways: tuple[str, ...] = WAYS
    apart: bool = False
    """It concerns all clients of a place, so no other life goes on there."""

    def kinds(self) -> Iterator[Kind]:
        for kind in KINDS:
            if self.of == "both" or kind.consumes == (self.of == "consumers"):
                yield kind


LIVES: Final = {
    "start alone": Life(body=lives.start_alone),
    "idle": Life(body=lives.idle, fed=False),
    "quiet topic": Life(body=lives.quiet_topic, of="consumers"),
    "rolling deploy": Life(body=lives.rolling_deploy),
    "scale 1-3-1": Life(body=lives.scaling, of="consumers"),
    "normal close": Life(body=lives.normal_close),
    "short job": Life(body=lives.short_job),
    "catching up": Life(body=lives.catching_up, of="consumers", fed=False),
    "idle producer": Life(body=lives.idle_producer, of="producers"),
    "subscription changed twice": Life(body=lives.subscription_changes, apart=True),
    "host restart": Life(body=lives.restarts("host"), apart=True, ways=("host", "gateway")),
    "gateway restart": Life(body=lives.restarts("gateway"), apart=True, ways=("gateway", "kafka")),
    "two programs, one client id": Life(body=lives.one_client_id),
    "slow application": Life(body=lives.slow_application, of="consumers", rings=BEHIND),
    "stuck": Life(body=lives.stuck, of="consumers", rings=STALLED),
    "consumer killed": Life(body=lives.killed, of="consumers", rings=LOST),
    "producer killed in flight": Life(body=lives.killed_in_flight, of="producers", rings=LOST),
    "produce quota": Life(body=lives.throttled_produce, of="producers", rings=PRODUCE_QUOTA),
    "fetch quota": Life(body=lives.throttled_fetch, of="consumers", rings=FETCH_QUOTA, fed=False),
    "wrong password": Life(body=lives.wrong_password, rings=LOGINS, ways=("host", "gateway")),
    "too large": Life(body=lives.too_large, of="producers", rings=LOSS),
    "topic absent": Life(body=lives.topic_absent, of="producers", rings=LOSS),
    "joins and leaves": Life(body=lives.joins_and_leaves, of="consumers", rings=STORM),
    "slow broker": Life(
        body=lives.slow_broker, rings=frozenset({"slow-broker"}), ways=("gateway",), apart=True
    ),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A life of a kind of client in a place."""

    life: str
    kind: Kind
    way: str

    @property
    def name(self) -> str:
        return f"{self.way}-{self.life}-{self.kind.name}".replace(" ", "-").replace(",", "")


def cells(way: str, lives: frozenset[str] = frozenset(), kinds: frozenset[str] = frozenset()) -> list[Cell]:
    """The cells of a place; of all lives and kinds if none are named."""
    return [
        Cell(name, kind, way)
        for name, life in LIVES.items()
        if way in life.ways and (not lives or name in lives)
        for kind in life.kinds()
        if not kinds or kind.name in kinds
    ]

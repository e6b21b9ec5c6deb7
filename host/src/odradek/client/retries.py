"""Asking again: what a broker refuses for now is asked until it is settled or the time is over.

The pauses are those of Kafka's clients: ``retry.backoff.ms`` 100, doubled up to ``retry.backoff.max.ms``
1000.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from odradek.client.errors import RequestFailed
from odradek.wire.error_code import ErrorCode

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
ANSWERS = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
)
"""Retriable for a consumer, which may wait until somebody makes what is missing; who administers is that
somebody."""

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


def passing(outcome: object) -> bool:
    """Whether this is a refusal that may be over in a moment."""
    return isinstance(outcome, RequestFailed) and outcome.code.retriable and outcome.code not in ANSWERS


@dataclass(slots=True)
class Retries:
    """How long one operation goes on asking."""

    timeout_s: float
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def settle(self, attempt: Callable[[], Value]) -> Value:
        """The value of the first attempt that is not refused for now.

        Raises:
            RequestFailed: It was refused for good, or until the time was over.
        """
        pauses = self.pauses(self.now_s() + self.timeout_s)
        while True:
            try:
                return attempt()
            except RequestFailed as error:
                if not passing(error) or not next(pauses, False):
                    raise

    def settle_each(
        self, items: Iterable[Item], attempt: Callable[[list[Item]], Mapping[Item, Value | RequestFailed]]
    ) -> dict[Item, Value | RequestFailed]:
        """What became of each item; those that are refused for now are asked again, and only those.

        Args:
            items: What to ask about, each once.
            attempt: Asks about some of them. If it raises `RequestFailed`, that is the answer for all.
        """
        wanted = list(items)
        settled: dict[Item, Value | RequestFailed] = {}
        pauses = self.pauses(self.now_s() + self.timeout_s)
        pending = wanted
        while pending:
            settled |= answered(pending, attempt)
            pending = [item for item in pending if passing(settled[item])]
            if pending and not next(pauses, False):
                break
        return {item: settled[item] for item in wanted}

    def pauses(self, deadline_s: float) -> Iterator[bool]:
        """True after each pause, until the next one would end behind the deadline."""
        pause_s = FIRST_PAUSE_S
        while self.now_s() + pause_s < deadline_s:
            self.sleep(pause_s)
            yield True
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def answered(
    items: list[Item], attempt: Callable[[list[Item]], Mapping[Item, Value | RequestFailed]]
) -> dict[Item, Value | RequestFailed]:
    """One attempt; an item that the broker says nothing about is refused."""
    try:
        found = attempt(items)
    except RequestFailed as error:
        return dict.fromkeys(items, error)
    silence = ErrorCode.UNKNOWN_SERVER_ERROR, "the broker does not answer for it"
    return {item: found[item] if item in found else RequestFailed(*silence, str(item)) for item in items}


def values(outcomes: Mapping[Item, Value | RequestFailed]) -> dict[Item, Value]:
    """All values.

    Raises:
        RequestFailed: One item has none; the first of them.
    """
    found: dict[Item, Value] = {}
    for item, outcome in outcomes.items():
        if isinstance(outcome, RequestFailed):
            raise outcome
        found[item] = outcome
    return found

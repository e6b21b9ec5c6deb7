"""Asking again: what a broker refuses for now is asked until it is settled or the time is over.

The pauses are those of Kafka's clients: ``retry.backoff.ms`` 100, doubled up to ``retry.backoff.max.ms``
1000. What exceeded a quota is asked again after the time that the broker told (KIP-599).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping
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


def exceeds_quota(outcome: object) -> bool:
    """Whether this is a refusal that is over when the client has waited as it was told."""
    return isinstance(outcome, RequestFailed) and outcome.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def throttle_s(outcomes: Iterable[object]) -> float:
    """How long the client was told to wait."""
    told_ms = [outcome.throttle_ms for outcome in outcomes if isinstance(outcome, RequestFailed)]
    return max(told_ms, default=0) / 1000


@dataclass(slots=True)
class Pauses:
    """The pauses of one operation."""

    deadline_s: float
    now_s: Callable[[], float]
    sleep: Callable[[float], None]
    next_s: float = FIRST_PAUSE_S

    def pause(self, told_s: float = 0) -> bool:
        """Wait for as long as the broker told, else a little longer each time; False without waiting if that
        would take longer than there is time.
        """
        wait_s = told_s or self.next_s
        if self.now_s() + wait_s >= self.deadline_s:
            return False
        self.sleep(wait_s)
        if not told_s:
            self.next_s = min(2 * self.next_s, LONGEST_PAUSE_S)
        return True


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
        pauses = self.pauses()
        while True:
            try:
                return attempt()
            except RequestFailed as error:
                if not passing(error) or not pauses.pause(throttle_s([error])):
                    raise

    def settle_each(
        self,
        items: Iterable[Item],
        attempt: Callable[[list[Item]], Mapping[Item, Value | RequestFailed]],
        retry_on_quota_violation: bool = True,
    ) -> dict[Item, Value | RequestFailed]:
        """What became of each item; those that are refused for now are asked again, and only those.

        Args:
            items: What to ask about, each once.
            attempt: Asks about some of them. If it raises `RequestFailed`, that is the answer for all.
            retry_on_quota_violation: Whether THROTTLING_QUOTA_EXCEEDED is only for now.
        """
        wanted = list(items)
        settled: dict[Item, Value | RequestFailed] = {}
        pauses = self.pauses()
        pending = wanted
        while pending:
            settled |= answered(pending, attempt)
            pending = [
                item
                for item in pending
                if passing(settled[item]) and (retry_on_quota_violation or not exceeds_quota(settled[item]))
            ]
            if pending and not pauses.pause(throttle_s(settled[item] for item in pending)):
                break
        return {item: settled[item] for item in wanted}

    def pauses(self) -> Pauses:
        """Those of an operation that begins now."""
        return Pauses(self.now_s() + self.timeout_s, self.now_s, self.sleep)


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

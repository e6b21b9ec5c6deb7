"""Retries: a temporary refusal is retried until it is resolved or the time is up.

The pauses are those of Kafka's clients: ``retry.backoff.ms`` 100, doubled up to ``retry.backoff.max.ms``
1000. A request that exceeded a quota is retried after the throttle time in the response (KIP-599).
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
"""Retriable errors that an admin client must not retry. A consumer may wait until an administrator has
created a missing topic; here the administrator is the caller."""

Item = TypeVar("Item", bound=Hashable)
Value = TypeVar("Value")


def is_temporary(outcome: object) -> bool:
    """Whether this is a refusal that a retry may resolve."""
    return isinstance(outcome, RequestFailed) and outcome.code.retriable and outcome.code not in ANSWERS


def exceeds_quota(outcome: object) -> bool:
    """Whether this is a refusal that ends after the throttle time of the response."""
    return isinstance(outcome, RequestFailed) and outcome.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


def throttle_s(outcomes: Iterable[object]) -> float:
    """The longest throttle time of the refusals; 0 if none has one."""
    told_ms = [outcome.throttle_ms for outcome in outcomes if isinstance(outcome, RequestFailed)]
    return max(told_ms, default=0) / 1000


@dataclass(slots=True)
class Pauses:
    """The pauses of one operation."""

    deadline_s: float
    now_s: Callable[[], float]
    sleep: Callable[[float], None]
    next_s: float = FIRST_PAUSE_S
    longest_s: float = LONGEST_PAUSE_S

    def pause(self, told_s: float = 0) -> bool:
        """Wait for the throttle time if there is one, otherwise longer each time.

        Returns False without waiting if the deadline would pass.
        """
        wait_s = told_s or self.next_s
        if self.now_s() + wait_s >= self.deadline_s:
            return False
        self.sleep(wait_s)
        if not told_s:
            self.next_s = min(2 * self.next_s, self.longest_s)
        return True


@dataclass(slots=True)
class Retries:
    """Retries operations until a timeout that starts with each operation."""

    timeout_s: float
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    first_pause_s: float = FIRST_PAUSE_S
    longest_pause_s: float = LONGEST_PAUSE_S

    def settle(self, attempt: Callable[[], Value]) -> Value:
        """The value of the first attempt that is not refused temporarily.

        Raises:
            RequestFailed: The refusal is permanent, or it lasted until the timeout.
        """
        pauses = self.pauses()
        while True:
            try:
                return attempt()
            except RequestFailed as error:
                if not is_temporary(error) or not pauses.pause(throttle_s([error])):
                    raise

    def settle_each(
        self,
        items: Iterable[Item],
        attempt: Callable[[list[Item]], Mapping[Item, Value | RequestFailed]],
        retry_on_quota_violation: bool = True,
    ) -> dict[Item, Value | RequestFailed]:
        """The result of each item. Only the temporarily refused items are retried.

        Args:
            items: The items, without duplicates.
            attempt: Requests some of the items. If it raises `RequestFailed`, that is the result of all.
            retry_on_quota_violation: Whether THROTTLING_QUOTA_EXCEEDED is a temporary refusal.
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
                if is_temporary(settled[item])
                and (retry_on_quota_violation or not exceeds_quota(settled[item]))
            ]
            if pending and not pauses.pause(throttle_s(settled[item] for item in pending)):
                break
        return {item: settled[item] for item in wanted}

    def pauses(self) -> Pauses:
        """The pauses of an operation that starts now."""
        deadline_s = self.now_s() + self.timeout_s
        return Pauses(deadline_s, self.now_s, self.sleep, self.first_pause_s, self.longest_pause_s)


def answered(
    items: list[Item], attempt: Callable[[list[Item]], Mapping[Item, Value | RequestFailed]]
) -> dict[Item, Value | RequestFailed]:
    """The results of one attempt; UNKNOWN_SERVER_ERROR for items that the response omits."""
    try:
        found = attempt(items)
    except RequestFailed as error:
        return dict.fromkeys(items, error)
    silence = ErrorCode.UNKNOWN_SERVER_ERROR, "missing in the broker's response"
    return {item: found[item] if item in found else RequestFailed(*silence, str(item)) for item in items}


def values(outcomes: Mapping[Item, Value | RequestFailed]) -> dict[Item, Value]:
    """The values of all items.

    Raises:
        RequestFailed: The refusal of the first refused item.
    """
    found: dict[Item, Value] = {}
    for item, outcome in outcomes.items():
        if isinstance(outcome, RequestFailed):
            raise outcome
        found[item] = outcome
    return found

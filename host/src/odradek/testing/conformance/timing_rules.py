"""Rules about the times of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from odradek.testing.conformance.conversation_rules import NO_HANDSHAKE, NO_PUSH
from odradek.testing.conformance.exchange import ClientInstance, Handshake, Pushed, received_ms
from odradek.testing.conformance.finding import Finding, Observation, ok, unseen, wrong
from odradek.wire.error_code import ErrorCode

EARLY_MS = 100
"""Tolerance for an early push: the host may have read the previous push late."""
LATE_MS = 300
"""Tolerance for a late push on a busy machine or from a client that has just started."""
SHORTEST_INTERVAL_MS = 1_000
"""The shortest interval for which these tolerances allow a verdict."""
FIRST_PUSH = (0.5, 1.5)
"""Earliest and latest first push after the handshake, in intervals."""
LATE = 1.1
"""A client whose pushes usually come later than this many intervals does not keep the interval."""
BY_HAND = unseen("a test controlled the host's clock")


def untimed(seen: Observation, interval_ms: int) -> Finding | None:
    """The reason why times cannot be checked; None if they can."""
    if not seen.timed:
        return BY_HAND
    if interval_ms < SHORTEST_INTERVAL_MS:
        return unseen(
            f"an interval of {interval_ms} ms is too short to check: use at least {SHORTEST_INTERVAL_MS} ms"
        )
    return None


def first_push(instance: ClientInstance, seen: Observation) -> Finding:
    """The first push comes 0.5 to 1.5 intervals after the handshake, to spread the load of many clients."""
    start = next((each for each in instance.handshakes if wants_metrics(each)), None)
    if start is None:
        return NO_HANDSHAKE
    following = instance.exchanges[instance.exchanges.index(start) + 1 :]
    push = following[0] if following else None
    if not isinstance(push, Pushed) or push.terminating:
        return unseen("no push followed the first handshake")
    interval_ms = start.response.push_interval_ms
    if (reason := untimed(seen, interval_ms)) is not None:
        return reason
    waited_ms = received_ms(push) - received_ms(start)
    text = f"{waited_ms / interval_ms:.2f} of the interval after the handshake"
    least, most = (share * interval_ms for share in FIRST_PUSH)
    kept = least - EARLY_MS <= waited_ms <= most + LATE_MS
    return ok(text) if kept else wrong(text)


def wants_metrics(handshake: Handshake) -> bool:
    return handshake.error is ErrorCode.NONE and bool(handshake.response.requested_metrics)


def gaps(instance: ClientInstance) -> Iterator[tuple[int, int]]:
    """Yield the time and the interval between each accepted push and a push that directly follows it."""
    for index, (before, push) in enumerate(pairwise(instance.exchanges), start=1):
        if not isinstance(before, Pushed) or before.error is not ErrorCode.NONE:
            continue
        if not isinstance(push, Pushed) or push.terminating or push.subscription_id != before.subscription_id:
            continue
        interval_ms = instance.interval_ms(index)
        if interval_ms:
            yield received_ms(push) - received_ms(before), interval_ms


def interval(instance: ClientInstance, seen: Observation) -> Finding:
    """The client pushes once per interval, and not earlier."""
    found = list(gaps(instance))
    if not found:
        return unseen("no two pushes in a row were accepted")
    if (reason := untimed(seen, min(interval_ms for _, interval_ms in found))) is not None:
        return reason
    shares = [gap_ms / interval_ms for gap_ms, interval_ms in found]
    text = f"{min(shares):.2f} to {max(shares):.2f} of the interval in {len(shares)} gaps"
    # the topic does not show handshakes, after which a push may come at once, nor refused pushes, which
    # leave a longer gap
    early = seen.complete and any(gap_ms < interval_ms - EARLY_MS for gap_ms, interval_ms in found)
    delays = [gap_ms - LATE * interval_ms for gap_ms, interval_ms in found]
    late = (median(delays) if seen.complete else min(delays)) > LATE_MS
    return wrong(text) if early or late else ok(text)


def terminating(instance: ClientInstance, seen: Observation) -> Finding:
    """A client that closes sends a last push, marked as terminating."""
    pushes = instance.pushes
    marked = [index for index, push in enumerate(pushes) if push.terminating]
    if not pushes:
        return NO_PUSH
    if not marked:
        return unseen("no push was marked as terminating: the client may still be running")
    after = len(pushes) - 1 - marked[0]
    return (
        wrong(f"{after} pushes after the terminating push") if after else ok("the last push is terminating")
    )

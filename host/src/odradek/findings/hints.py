"""What a person sees who looks at a client: findings without an alarm, and notes."""

from __future__ import annotations

from functools import partial
from typing import Final

from odradek.findings.troubles import (
    CLOCK_SKEW,
    CONSUMER,
    DEFECTS,
    JAVA,
    NOT_A_BROKER,
    OURS,
    OVERSIZE,
    PRODUCER,
    THROTTLED,
    TROUBLES,
    UNEVEN,
    UNSUPPORTED,
    Condition,
    Kind,
    Trouble,
    everywhere,
)

note = partial(Trouble, kind=Kind.NOTE, for_s=0.0)

HINTS: Final[tuple[Trouble, ...]] = (
    note(
        id="one-record-batches",
        question="Does a producer send each record alone?",
        metrics={JAVA: PRODUCER + "records.per.request.avg"},
        op="<",
        threshold=1.5,
        unit="records in a request",
        also=(Condition(PRODUCER + "record.send.rate", ">", 10.0),),
        source=f"1.5 records, at more than 10 records/s: {OURS}",
        advice="Do not flush after each record, and raise linger.ms (5 ms since Kafka 4.0, 0 before).",
    ),
    note(
        id="small-batches",
        question="Are batches small because nothing waits for them?",
        metrics={JAVA: PRODUCER + "batch.size.avg"},
        op="<",
        threshold=1024.0,
        unit="By",
        also=(
            Condition(PRODUCER + "request.rate", ">", 50.0),
            Condition(PRODUCER + "record.queue.time.avg", "<", 1.0),
        ),
        source=f"1 KiB of batch.size (16 KiB), at more than 50 requests/s: {OURS}",
        advice="Set linger.ms to 5 or more: batches fill, and brokers get fewer requests.",
    ),
    Trouble(
        id="slow-poll",
        question="Does the application call poll() too seldom?",
        metrics={JAVA: CONSUMER + "time.between.poll.max"},
        threshold=240_000.0,
        unit="ms",
        for_s=0.0,
        source="80 % of max.poll.interval.ms (300 000 ms)",
        advice="Lower max.poll.records, shorten the work between two polls, or move it to other threads.",
    ),
    note(
        id="busy-application",
        question="Does a consumer wait for its application instead of for records?",
        metrics=everywhere(CONSUMER + "poll.idle.ratio.avg"),
        op="<",
        threshold=0.1,
        clear=0.2,
        unit="share of the time in poll()",
        found_s=10.0,
        source=f"10 %: {OURS}; no trouble by itself: a consumer that catches up has it, too",
        advice="If its lag grows, the application is too slow: look at its work for a record, or scale.",
    ),
    note(
        id="uneven-partitions",
        question="Does a member have many more partitions than the others of its group?",
        metrics=everywhere(UNEVEN),
        threshold=2.0,
        unit="times the mean of the group",
        source=f"twice the mean: {OURS}",
        advice="Look at the assignor and at the topics that each member subscribes to.",
    ),
    note(
        id="clock-skew",
        question="Is the clock of a client wrong?",
        metrics=everywhere(CLOCK_SKEW),
        threshold=30.0,
        unit="s",
        source=f"30 s: {OURS}; a client makes its push just before it sends it",
        advice="Synchronize the clock of the client's machine, or that of the host.",
    ),
    Trouble(
        id="payload-too-large",
        question="Are all pushes of a client too large?",
        metrics=everywhere(OVERSIZE),
        op=">=",
        threshold=3.0,
        unit="pushes in a row",
        for_s=0.0,
        source="3 pushes: Java clients do not make a push smaller after TELEMETRY_TOO_LARGE (KAFKA-21077)",
        advice="Raise telemetry.max.bytes, or subscribe this client to fewer metrics.",
    ),
    note(
        id="known-defect",
        question="Does the client's library have a known defect?",
        metrics=everywhere(DEFECTS),
        threshold=0.0,
        unit="defects",
        source="release notes of the library",
        advice="Upgrade the library.",
    ),
    note(
        id="past-support",
        question="Is the client's library past its support?",
        metrics=everywhere(UNSUPPORTED),
        threshold=0.0,
        unit="days",
        source="the support policy of the library",
        advice="Upgrade the library.",
    ),
)
"""Troubles without an alarm: a person who looks at a client sees them."""
FINDINGS: Final = (*TROUBLES, *HINTS)
SLOW_MS: Final = 1_000.0
"""Mean latency of the requests to a slow broker."""
SHARED: Final = tuple(
    Trouble(
        id="slow-broker",
        question="Is the broker slow, or a client?",
        kind=Kind.SHARED,
        metrics=everywhere(role + "node.request.latency.avg"),
        labels=("node_id",),
        threshold=SLOW_MS,
        unit="ms",
        unless=THROTTLED,
        skip=NOT_A_BROKER,
        found_s=30.0,
        source=f"the majority of its clients; 1 000 ms: {OURS}",
        advice="Look at the broker: disk, garbage collection, replication. The clients are not the cause.",
    )
    for role in (PRODUCER, CONSUMER)
)
"""Troubles that mean something only if most clients of a broker have them."""
EXPLAINS: Final = {
    "slow-broker": (
        "slow-produce-requests",
        "slow-consume-requests",
        "retries",
        "buffer-nearly-full",
        "long-queue",
        "slow-commits",
    )
}
"""The troubles of clients that a cause explains."""

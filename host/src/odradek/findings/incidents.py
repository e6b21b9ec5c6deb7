"""Incidents: what a host or a gateway sees going wrong between clients and brokers, and when it is a trouble.

Clients do not tell of it. The reference of metrics has the labels of each sum.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

OBSERVED: Final = "io.odradek.observed.client."
FAILED_LOGINS: Final = OBSERVED + "failed.logins"
"""By ``mechanism``, ``user`` and ``address``."""
TOPIC_REFUSALS: Final = OBSERVED + "topic.refusals"
"""By ``api``, ``error`` and ``topic``: errors that a client cannot get over by trying again."""
TOPIC_ERRORS: Final = OBSERVED + "topic.errors"
"""By ``api``, ``error`` and ``topic``: errors after which a client tries again."""
UNKNOWN_TOPICS: Final = OBSERVED + "unknown.topics"
"""By ``api`` and ``topic``."""
THROTTLED: Final = OBSERVED + "quota.throttled.time"
"""By ``api``, ``quota``, ``entity`` and ``limit``."""
GROUP_JOINS: Final = OBSERVED + "group.joins"
"""By ``group``: new members."""
GROUP_LEAVES: Final = OBSERVED + "group.leaves"
"""By ``group`` and ``reason``."""
GROUP_REJOINS: Final = OBSERVED + "group.rejoins"
"""By ``group`` and ``reason``: members that begin a rebalance and say why."""
GROUP_ERRORS: Final = OBSERVED + "group.errors"
"""By ``api``, ``error`` and ``group``."""
STUCK: Final = OBSERVED + "group.stuck.time"
"""By ``group`` and ``reason``: members that have left, and keep their connection."""
LOST: Final = OBSERVED + "lost"
"""By ``why``."""
MINUTE_S: Final = 60.0
OURS: Final = "our choice"
T = TypeVar("T")


def incident_troubles(
    trouble: Callable[..., T], loss: Callable[..., T], everywhere: Callable[[str], object]
) -> tuple[T, ...]:
    """The rows of the table of troubles.

    Args:
        trouble: Makes a row; see `troubles.Trouble`.
        loss: Makes a row of what is lost.
        everywhere: The metrics of a row that all client software has.
    """
    in_a_minute = partial(trouble, over_s=MINUTE_S, for_s=0.0)
    lost = partial(loss, agg="each", for_s=0.0)
    return (
        lost(
            id="failed-logins",
            question="Does a client fail to log in again and again?",
            metrics=everywhere(FAILED_LOGINS),
            labels=("mechanism", "user", "address"),
            op=">=",
            threshold=3.0,
            over_s=MINUTE_S,
            unit="logins in a minute",
            source="3 in a minute: a token that is being renewed fails once",
            advice="Look at the password or the token of the user; the audit log of the host has the reason.",
        ),
        lost(
            id="lost",
            question="Which client has died?",
            metrics=everywhere(LOST),
            labels=("why",),
            unit="clients in 2 minutes",
            source="not back after session.timeout.ms (45 000 ms) or two push intervals",
            advice="Look why the process ended or its network failed; start it again.",
        ),
        in_a_minute(
            id="stuck",
            question="Does a consumer hang, so that it has lost its place in its group?",
            metrics=everywhere(STUCK),
            labels=("group", "reason"),
            threshold=0.0,
            for_s=60.0,
            found_s=0.0,
            unit="ms in a minute",
            source="it has left its group, and keeps its connection for 15 s",
            advice="Its application has not called poll() for max.poll.interval.ms: look where it hangs. "
            "Other members read its partitions meanwhile, if there are any.",
        ),
        in_a_minute(
            id="comes-and-goes",
            question="Does a client join its group again and again?",
            metrics=everywhere(GROUP_JOINS),
            labels=("group",),
            op=">=",
            threshold=10.0,
            over_s=5 * MINUTE_S,
            unit="joins in 5 minutes",
            source=f"one every 30 s: {OURS}; a client joins once in its life",
            advice="Look why the client leaves: its reason is in the metric group.leaves, if it gives one. "
            "All other members wait for it.",
        ),
        in_a_minute(
            id="group-errors",
            question="Is a member refused by its group?",
            metrics=everywhere(GROUP_ERRORS),
            labels=("api", "error", "group"),
            op=">=",
            threshold=2.0,
            unit="answers in a minute",
            source="twice: one may be the end of a client whose place another one takes",
            advice="INCONSISTENT_GROUP_PROTOCOL: members have no assignor in common. FENCED_INSTANCE_ID: two "
            "clients have the same group.instance.id. GROUP_AUTHORIZATION_FAILED: an ACL is missing.",
        ),
        in_a_minute(
            id="throttled",
            question="Does a quota hold a client back?",
            metrics=everywhere(THROTTLED),
            labels=("api", "quota", "entity", "limit"),
            threshold=6_000.0,
            for_s=180.0,
            found_s=0.0,
            unit="ms in a minute",
            source=f"10 % of the time: {OURS}",
            advice="Raise the quota of the entity, or send and read less. Meanwhile the client cannot push.",
        ),
        lost(
            id="topic-refusals",
            question="Is a client refused what it does with a topic?",
            metrics=everywhere(TOPIC_REFUSALS),
            labels=("api", "error", "topic"),
            unit="answers in 2 minutes",
            source="any: the records of a refused batch are lost",
            advice="The error says why: MESSAGE_TOO_LARGE asks for smaller records or a larger "
            "max.message.bytes of the topic, TOPIC_AUTHORIZATION_FAILED for an ACL.",
        ),
        in_a_minute(
            id="unknown-topic",
            question="Does a client ask for a topic that does not exist?",
            metrics=everywhere(UNKNOWN_TOPICS),
            labels=("api", "topic"),
            op=">=",
            threshold=10.0,
            unit="answers in a minute",
            source=f"10 in a minute: {OURS}; a topic that is created at its first use has one or two",
            advice="Create the topic, or correct its name in the settings of the application.",
        ),
        in_a_minute(
            id="topic-errors",
            question="Do brokers answer a client with errors of a topic, again and again?",
            metrics=everywhere(TOPIC_ERRORS),
            labels=("api", "error", "topic"),
            op=">=",
            threshold=10.0,
            for_s=2 * MINUTE_S,
            unit="answers in a minute",
            source=f"10 in a minute, for longer than a broker needs to restart: {OURS}",
            advice="Look at the brokers of the topic: with NOT_ENOUGH_REPLICAS, replicas are not in sync.",
        ),
    )

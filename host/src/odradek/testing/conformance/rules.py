"""All rules of the conformance report, in its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odradek.testing.conformance import conversation_rules, payload_rules, timing_rules
from odradek.testing.conformance.exchange import ClientInstance
from odradek.testing.conformance.finding import Finding, Observation
from odradek.testing.conformance.reaction_rules import asks_again, changes_codec, reaction, stops, waits
from odradek.wire.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation of KIP-714."""

    name: str
    expected: str
    look: Callable[[ClientInstance, Observation], Finding]
    in_topic: bool
    """Whether accepted pushes alone suffice to check it."""


RULES: Final = (
    Rule("instance id", "requests an id once, then uses it", conversation_rules.instance_id, False),
    Rule(
        "subscription id",
        "pushes with the subscription id of its last handshake",
        conversation_rules.subscription_id,
        False,
    ),
    Rule("compression", "uses an accepted codec, or none", conversation_rules.compression, True),
    Rule("size", "keeps pushes within the size limit", conversation_rules.size, False),
    Rule(
        "first push", "first pushes 0.5 to 1.5 intervals after the handshake", timing_rules.first_push, False
    ),
    Rule("interval", "pushes once per interval", timing_rules.interval, True),
    Rule("terminating push", "sends a last push when it closes", timing_rules.terminating, True),
    Rule("requested metrics", "pushes only requested metrics", payload_rules.requested, False),
    Rule(
        "metric names",
        "uses lower case with dots, after a reversed domain name",
        payload_rules.metric_names,
        True,
    ),
    Rule(
        "resource labels", "describes itself with the labels of the KIP", payload_rules.resource_labels, True
    ),
    Rule("point labels", "uses lower case with underscores", payload_rules.point_labels, True),
    *(
        Rule(error.name, expected, reaction(error, react), False)
        for error, expected, react in (
            (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "requests its subscription", asks_again),
            (
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "requests its subscription, or uses another codec",
                changes_codec,
            ),
            (ErrorCode.THROTTLING_QUOTA_EXCEEDED, "sends nothing for an interval, then continues", waits),
            (ErrorCode.TELEMETRY_TOO_LARGE, "sends nothing for an interval, then continues", waits),
            (ErrorCode.INVALID_RECORD, "stops pushing", stops),
        )
    ),
)

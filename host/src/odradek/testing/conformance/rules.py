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
    """What KIP-714 expects of a client."""

    name: str
    expected: str
    look: Callable[[ClientInstance, Observation], Finding]
    in_topic: bool
    """Whether accepted pushes alone tell something about it."""


RULES: Final = (
    Rule("instance id", "asks for an id once, then uses it", conversation_rules.instance_id, False),
    Rule(
        "subscription id", "pushes with that of its last handshake", conversation_rules.subscription_id, False
    ),
    Rule("compression", "uses an accepted codec, or none", conversation_rules.compression, True),
    Rule("size", "pushes no more than the host takes", conversation_rules.size, False),
    Rule("first push", "0.5 to 1.5 intervals after the handshake", timing_rules.first_push, False),
    Rule("interval", "pushes once per interval", timing_rules.interval, True),
    Rule("terminating push", "pushes once more when it closes", timing_rules.terminating, True),
    Rule("requested metrics", "pushes what was asked for, nothing else", payload_rules.requested, False),
    Rule(
        "metric names",
        "lower case, with dots, after a domain turned around",
        payload_rules.metric_names,
        True,
    ),
    Rule("resource labels", "says of itself what the KIP names", payload_rules.resource_labels, True),
    Rule("point labels", "lower case, with underscores", payload_rules.point_labels, True),
    *(
        Rule(error.name, expected, reaction(error, react), False)
        for error, expected, react in (
            (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "asks for its subscription", asks_again),
            (
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "asks for its subscription, or compresses otherwise",
                changes_codec,
            ),
            (ErrorCode.THROTTLING_QUOTA_EXCEEDED, "says nothing for an interval, then goes on", waits),
            (ErrorCode.TELEMETRY_TOO_LARGE, "says nothing for an interval, then goes on", waits),
            (ErrorCode.INVALID_RECORD, "pushes no more", stops),
        )
    ),
)

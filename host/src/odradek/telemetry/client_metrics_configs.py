"""The properties of a CLIENT_METRICS resource; after Kafka's ClientMetricsConfigs.

This follows Kafka's trunk, with KIP-1161's rules for lists and with RE2 patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.bounded_regex import RegexBounds, RegexError, RegexTooLargeError, compiled_within
from odradek.settings.kinds import INT, Items, Whole
from odradek.settings.setting import Scope, Setting
from odradek.telemetry.instance_match import SELECTORS, backtracking_fullmatch, stored_program
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"

DEFAULT_INTERVAL_MS: Final = 300_000
MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
ALL_METRICS: Final = "*"

JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that ``String.trim`` removes."""
COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
INTEGER: Final = re.compile(r"[+-]?[0-9]+")
NOTHING: Final[Mapping[str, str]] = {}


CONFIG_KEYS: Final = (
    Setting(
        name=METRICS,
        kind=Items(),
        default=(),
        documentation="Telemetry metric name prefix list",
        scope=Scope.SUBSCRIPTION,
        unset="none",
    ),
    Setting(
        name=INTERVAL_MS,
        kind=Whole(INT, MIN_INTERVAL_MS, MAX_INTERVAL_MS),
        default=DEFAULT_INTERVAL_MS,
        documentation="Metrics push interval in milliseconds",
        unit="ms",
        scope=Scope.SUBSCRIPTION,
    ),
    Setting(
        name=MATCH,
        kind=Items(),
        default=(),
        documentation="Client match criteria",
        scope=Scope.SUBSCRIPTION,
        unset="every client",
    ),
)
"""The properties of a subscription, in Kafka's words."""
MAX_LENGTH_KEY: Final = "telemetry.match.max.length"
MATCH_BOUNDS: Final = RegexBounds(max_length=2_048, max_steps=16_384)
"""The default limits of a ``match``."""
NO_PATTERN: Final = RegexError("there is no selector")
KEY_NAMES: Final = frozenset(key.name for key in CONFIG_KEYS)


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A parsed subscription."""

    name: str
    metrics: tuple[str, ...]
    """Prefixes of metric names, in the order of the configuration."""
    interval_ms: int
    match_pattern: Mapping[str, str]
    """Regular expressions by selector; empty matches every client."""


def validate(
    name: str,
    properties: Mapping[str, str],
    stored: Mapping[str, str] = NOTHING,
    bounds: RegexBounds = MATCH_BOUNDS,
) -> SubscriptionInfo:
    """Check the properties of a subscription after a change, and return them.

    Args:
        name: The name of the subscription.
        properties: All properties after the change.
        stored: All properties before the change. A ``match`` that does not change need not be an RE2
            expression within the bounds, so that older subscriptions can still be edited and deleted.
        bounds: Limits of a new ``match`` as a whole, and of each of its patterns.

    Raises:
        ApiError: INVALID_REQUEST or INVALID_CONFIG, with Kafka's message.
    """
    match = properties.get(MATCH, "")
    if match == stored.get(MATCH, ""):
        return parse(name, properties)
    if len(match) > bounds.max_length:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"A client match of {len(match)} characters is longer than {MAX_LENGTH_KEY} allows "
            f"({bounds.max_length}).",
        )
    return parse(name, properties, bounds)


def parse(name: str, properties: Mapping[str, str], bounds: RegexBounds | None = None) -> SubscriptionInfo:
    """Parse the properties of a subscription; missing ones have defaults.

    Args:
        name: The name of the subscription.
        properties: All properties.
        bounds: Limits of each pattern; None if they are stored already.

    Raises:
        ApiError: INVALID_REQUEST or INVALID_CONFIG, with Kafka's message.
    """
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key in properties:
        if key not in KEY_NAMES:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}")
    metrics = distinct_list(METRICS, properties.get(METRICS, ""))
    interval_ms = parse_interval_ms(properties.get(INTERVAL_MS, str(DEFAULT_INTERVAL_MS)))
    patterns = match_pattern(distinct_list(MATCH, properties.get(MATCH, "")), bounds)
    return SubscriptionInfo(name, tuple(metrics), interval_ms, patterns)


def parse_list(text: str) -> list[str]:
    """The elements of a LIST: none for a blank text, otherwise all parts between commas, even empty ones."""
    trimmed = text.strip(JAVA_BLANKS)
    return COMMA.split(trimmed) if trimmed else []


def distinct_list(key: str, text: str) -> list[str]:
    """A LIST without empty elements. A repeated element counts once, as Kafka 4.3.1 has it (KIP-1161).

    Raises:
        ApiError: INVALID_CONFIG.
    """
    elements = parse_list(text)
    if "" in elements:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Configuration '{key}' values must not be empty.")
    return list(dict.fromkeys(elements))


def parse_interval_ms(text: str) -> int:
    """The push interval.

    Raises:
        ApiError: INVALID_CONFIG if the text is not a 32-bit number, INVALID_REQUEST if it is out of range.
    """
    trimmed = text.strip(JAVA_BLANKS)
    interval_ms = int(trimmed) if len(trimmed) < 20 and INTEGER.fullmatch(trimmed) else None
    if interval_ms is None or not -(2**31) <= interval_ms < 2**31:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {text} for configuration {INTERVAL_MS}: Not a number of type INT",
        )
    if not MIN_INTERVAL_MS <= interval_ms <= MAX_INTERVAL_MS:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value {interval_ms} for {INTERVAL_MS}, interval must be between "
            f"{MIN_INTERVAL_MS} and {MAX_INTERVAL_MS} (1 hour)",
        )
    return interval_ms


def match_pattern(elements: Sequence[str] | None, bounds: RegexBounds | None = None) -> dict[str, str]:
    """Regular expressions by selector; of two elements with the same selector the last one counts.

    Args:
        elements: ``selector=pattern``.
        bounds: Limits of each pattern; None if they are stored already.

    Raises:
        ApiError: INVALID_CONFIG.
    """
    patterns = {}
    for element in elements or ():
        selector, equals, pattern = element.partition("=")
        selector, pattern = selector.strip(JAVA_BLANKS), pattern.strip(JAVA_BLANKS)
        problem = problem_of(pattern, bounds) if equals and selector in SELECTORS else NO_PATTERN
        if problem is not None and not is_expression(pattern, problem):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {element}")
        if problem is not None and bounds is not None:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Client match pattern `{selector}={pattern}` is not a valid regular expression: {problem}.",
            )
        patterns[selector] = pattern
    return patterns


def problem_of(pattern: str, bounds: RegexBounds | None) -> RegexError | None:
    """The reason why RE2 refuses a pattern; None if it accepts it."""
    try:
        if bounds is None:
            stored_program(pattern)
        else:
            compiled_within(pattern, bounds)
    except RegexError as reason:
        return reason
    return None


def is_expression(pattern: str, problem: RegexError) -> bool:
    """Whether a pattern that RE2 refuses is a regular expression nevertheless."""
    if problem is NO_PATTERN:
        return False
    return isinstance(problem, RegexTooLargeError) or backtracking_fullmatch(pattern) is not None

"""The properties of a CLIENT_METRICS resource; after Kafka's ClientMetricsConfigs.

This follows Kafka's trunk, with KIP-1161's rules for lists and with RE2 patterns.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from odradek.bounds.bounded_regex import RegexBounds, Verdict, verdict
from odradek.settings.kinds import INT, Items, Whole
from odradek.settings.setting import Scope, Setting
from odradek.telemetry.instance_match import SELECTORS
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT16_MAX

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
ILLEGAL: Final = "Illegal client matching pattern: "
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
    is_new = match != stored.get(MATCH, "")
    if is_new and len(match) > bounds.max_length:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"A client match of {len(match)} characters is longer than {MAX_LENGTH_KEY} allows "
            f"({bounds.max_length}).",
        )
    subscription = parse(name, properties)
    if is_new:
        check_patterns(subscription.match_pattern, bounds)
    return subscription


def parse(name: str, properties: Mapping[str, str]) -> SubscriptionInfo:
    """Parse the properties of a subscription; missing ones have defaults. Its patterns are not checked.

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
    patterns = match_pattern(distinct_list(MATCH, properties.get(MATCH, "")))
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


def match_pattern(elements: Iterable[str] | None) -> dict[str, str]:
    """Regular expressions by selector; of two elements with the same selector the last one counts.

    Raises:
        ApiError: INVALID_CONFIG: an element is not of the form ``selector=pattern``.
    """
    patterns = {}
    for element in elements or ():
        selector, equals, pattern = element.partition("=")
        selector, pattern = selector.strip(JAVA_BLANKS), pattern.strip(JAVA_BLANKS)
        if not equals or selector not in SELECTORS:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{ILLEGAL}{element}")
        patterns[selector] = pattern
    return patterns


def judged(pattern: str, bounds: RegexBounds) -> Verdict:
    """The result of checking a pattern. Its length counts as a part of a new ``match`` only."""
    return verdict(pattern, replace(bounds, max_length=INT16_MAX))


def check_patterns(patterns: Mapping[str, str], bounds: RegexBounds) -> None:
    """Check the patterns of a subscription.

    Raises:
        ApiError: INVALID_CONFIG; with Kafka's message if Java would refuse a pattern, too.
    """
    for selector, pattern in patterns.items():
        found = judged(pattern, bounds)
        if found.problem is None:
            continue
        element = f"{selector}={pattern}"
        if not found.too_large and not is_expression(pattern):
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{ILLEGAL}{element}")
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Client match pattern `{element}` is not a valid regular expression: {found.problem}.",
        )


def check_in_steps(match: str, bounds: RegexBounds) -> Generator[None, None, None]:
    """Do the expensive part of `check_patterns` before it is called: each pattern is a step."""
    if len(match) > bounds.max_length:
        return
    try:
        patterns = match_pattern(distinct_list(MATCH, match))
    except ApiError:
        return
    for pattern in patterns.values():
        judged(pattern, bounds)
        yield None


def is_expression(pattern: str) -> bool:
    """Whether a pattern that RE2 refuses is a regular expression nevertheless."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True

"""The rules for anomalies, from a TOML file: a metric, a threshold and a time."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

E = TypeVar("E", bound=StrEnum)
DEFAULT_FOR_S = 180.0
"""KIP-714's example of proactive monitoring: above a threshold for more than 180 seconds."""


class RuleError(ValueError):
    """A rule is invalid; the message names it and says why."""


class Op(StrEnum):
    """The comparison with the threshold that makes a value anomalous."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="

    @property
    def upward(self) -> bool:
        """Whether larger values are worse."""
        return self in (Op.ABOVE, Op.AT_LEAST)


class Aggregate(StrEnum):
    """The aggregate that is compared if an instance has several series of the metric."""

    EACH = "each"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule: an anomaly lasts while the values of a metric of an instance are beyond a threshold."""

    id: str
    metric: str
    """The full name of the metric: ``org.apache.kafka.producer.request.latency.avg``."""
    op: Op
    threshold: float
    for_s: float = DEFAULT_FOR_S
    """Seconds that must be exceeded before an anomaly is opened."""
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Only series with these labels."""
    agg: Aggregate = Aggregate.EACH


KEYS = ("id", "metric", "op", "threshold", "for_s", "attrs", "agg")
REQUIRED = KEYS[:4]


def parse_rules(text: str) -> list[Rule]:
    """Parse the rules of a file: a table ``[[rule]]`` for each.

    Raises:
        RuleError: The text is not TOML, or a rule is invalid.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"not TOML: {error}") from error
    entries = document.get("rule")
    if not isinstance(entries, list) or not entries or set(document) != {"rule"}:
        raise RuleError("expected tables [[rule]] and nothing else")
    rules = [parse_rule(entry, number) for number, entry in enumerate(entries, 1)]
    ids = [each.id for each in rules]
    for each in ids:
        if ids.count(each) > 1:
            raise RuleError(f"two rules have the id {each!r}")
    return rules


def parse_rule(entry: Mapping[str, Any], number: int) -> Rule:
    """Parse one rule.

    Raises:
        RuleError: A key is missing, unknown or of the wrong type.
    """
    name = f"rule {entry.get('id', number)!r}"
    for key in REQUIRED:
        if key not in entry:
            raise RuleError(f"{name}: {key} is missing")
    for key in entry:
        if key not in KEYS:
            raise RuleError(f"{name}: unknown key {key!r}; known are {', '.join(KEYS)}")
    attrs = entry.get("attrs", {})
    if not isinstance(attrs, dict) or not all(isinstance(value, str) for value in attrs.values()):
        raise RuleError(f"{name}: attrs: expected a table of texts, found {attrs!r}")
    return Rule(
        id=text(entry, "id", name),
        metric=text(entry, "metric", name),
        op=choice(Op, entry["op"], f"{name}: op"),
        threshold=number_of(entry, "threshold", name),
        for_s=number_of(entry, "for_s", name) if "for_s" in entry else DEFAULT_FOR_S,
        attrs=attrs,
        agg=choice(Aggregate, entry.get("agg", "each"), f"{name}: agg"),
    )


def text(entry: Mapping[str, Any], key: str, name: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise RuleError(f"{name}: {key}: expected a text, found {value!r}")
    return value


def number_of(entry: Mapping[str, Any], key: str, name: str) -> float:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise RuleError(f"{name}: {key}: expected a number, found {value!r}")
    if key == "for_s" and value < 0:
        raise RuleError(f"{name}: {key}: expected no less than 0, found {value!r}")
    return float(value)


def choice(kind: type[E], value: object, name: str) -> E:
    try:
        return kind(str(value))
    except ValueError as error:
        raise RuleError(f"{name}: expected one of {', '.join(kind)}, found {value!r}") from error

"""The rules for anomalies, from a TOML file: a metric, a threshold and a time."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from odradek.findings.troubles import TROUBLES

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
    clear: float | None = None
    """An anomaly goes on while values are beyond this threshold. None: the same threshold."""
    over_s: float = 0.0
    """Compare the increase of a sum over this many seconds; 0 compares the values."""
    per: str = ""
    """The full name of a metric of the same push to divide by; with ``over_s``, its increase."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that the rule reads."""
        return (self.metric, self.per) if self.per else (self.metric,)


KEYS = ("id", "metric", "op", "threshold", "for_s", "attrs", "agg", "clear", "over_s", "per")
REQUIRED = KEYS[:4]


def default_rules() -> list[Rule]:
    """The rules of the troubles that a threshold and a time tell; one for each metric of a trouble."""
    return [
        Rule(
            id=each.id,
            metric=metric,
            op=Op(each.op),
            threshold=each.threshold,
            for_s=each.for_s,
            agg=Aggregate(each.agg),
            clear=each.clear,
            over_s=each.over_s,
            per=each.per,
        )
        for each in TROUBLES
        if each.is_plain
        for metric in dict.fromkeys(each.metrics.values())
    ]


def combined(defaults: Iterable[Rule], own: Iterable[Rule]) -> list[Rule]:
    """The default rules and the user's own, which replace default rules with the same id."""
    given = list(own)
    replaced = {each.id for each in given}
    return [*(each for each in defaults if each.id not in replaced), *given]


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
    """Parse one rule."""
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
    rule = Rule(
        id=text(entry, "id", name),
        metric=text(entry, "metric", name),
        op=choice(Op, entry["op"], f"{name}: op"),
        threshold=number_of(entry, "threshold", name),
        for_s=number_of(entry, "for_s", name) if "for_s" in entry else DEFAULT_FOR_S,
        attrs=attrs,
        agg=choice(Aggregate, entry.get("agg", "each"), f"{name}: agg"),
        clear=number_of(entry, "clear", name) if "clear" in entry else None,
        over_s=number_of(entry, "over_s", name) if "over_s" in entry else 0.0,
        per=text(entry, "per", name) if "per" in entry else "",
    )
    better = rule.clear is None or (rule.clear <= rule.threshold) == rule.op.upward
    if not better and rule.clear != rule.threshold:
        side = "no more" if rule.op.upward else "no less"
        raise RuleError(f"{name}: clear: expected {side} than the threshold, found {rule.clear:g}")
    return rule


def text(entry: Mapping[str, Any], key: str, name: str) -> str:
    value = entry[key]
    if not isinstance(value, str) or not value:
        raise RuleError(f"{name}: {key}: expected a text, found {value!r}")
    return value


def number_of(entry: Mapping[str, Any], key: str, name: str) -> float:
    value = entry[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise RuleError(f"{name}: {key}: expected a number, found {value!r}")
    if key in ("for_s", "over_s") and value < 0:
        raise RuleError(f"{name}: {key}: expected no less than 0, found {value!r}")
    return float(value)


def choice(kind: type[E], value: object, name: str) -> E:
    try:
        return kind(str(value))
    except ValueError as error:
        raise RuleError(f"{name}: expected one of {', '.join(kind)}, found {value!r}") from error

"""The rules for anomalies, from a TOML file: a metric, a threshold and a time."""

from __future__ import annotations

import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from sys import float_info
from typing import Any, Final, NamedTuple

from odradek.findings.hints import SHARED
from odradek.findings.troubles import BY_ID, EXPLAINED, SILENCE, TROUBLES, Kind, Trouble
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import TABLE, TEXT, Choice, Number, declare, read_settings

DEFAULT_FOR_S = 180.0
"""KIP-714's example of proactive monitoring: above a threshold for more than 180 seconds."""
STORM = BY_ID["rebalance-storm"]
PLAIN: Final = Trouble(id="", question="", metrics={}, threshold=0.0, unit="", source="", advice="")
"""What a person's own rule asks besides its settings."""
COORDINATOR: Final = r"(node-)?[12]\d{9}"
"""How older clients of Java call the connection to the coordinator of their group."""
MS_PER_S: Final = 1000


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
        return self in (Op.ABOVE, Op.AT_LEAST)

    def holds(self, value: float, threshold: float) -> bool:
        return COMPARISONS[self](value, threshold)


COMPARISONS: Final[Mapping[Op, Callable[[float, float], bool]]] = {
    Op.ABOVE: operator.gt,
    Op.AT_LEAST: operator.ge,
    Op.BELOW: operator.lt,
    Op.AT_MOST: operator.le,
}


class Aggregate(StrEnum):
    """The aggregate that is compared if an instance has several series of the metric."""

    EACH = "each"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


OPS: Final = Choice({each.value: each for each in Op})
ANY: Final = Number(-float_info.max, float_info.max)
SECONDS: Final = Number(0, float_info.max)


class Limits(NamedTuple):
    """What the values of a series are compared with, and for how long they must be beyond it."""

    op: Op
    threshold: float
    clear: float
    hold_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule: an anomaly lasts while the values of a metric of an instance are beyond a threshold."""

    # fmt: off
    id: str = declare("id", TEXT, "", "The name of the rule.")
    metric: str = declare("metric", TEXT, "", "The full name of the metric.")
    op: Op = declare("op", OPS, Op.ABOVE, "An anomaly lasts while values are beyond the threshold.")
    threshold: float = declare("threshold", ANY, 0.0, "The threshold.")
    for_s: float = declare(
        "for_s", SECONDS, DEFAULT_FOR_S, "Seconds that must be exceeded before an anomaly is opened; 0 opens "
        "it at the first value.",
    )
    attrs: Mapping[str, str] = declare("attrs", TABLE, {}, "Only series with these labels.")
    agg: Aggregate = declare(
        "agg", Choice({each.value: each for each in Aggregate}), Aggregate.EACH,
        "The value to compare if an instance has several series.",
    )
    clear: float | None = declare(
        "clear", ANY, None, "An open anomaly ends only within this threshold.", unset="the threshold"
    )
    over_s: float = declare("over_s", SECONDS, 0.0, "Compare the increase of a sum over this many seconds.")
    per: str = declare(
        "per", TEXT, "", "Divide by this metric; with `over_s`, by its increase.", unset="none"
    )
    # fmt: on
    trouble: Trouble | None = None
    """The row of the table of troubles that the rule is made of; its further conditions hold. None: the rule
    is a person's own, and asks from the first push on."""

    @property
    def asks(self) -> Trouble:
        return self.trouble or PLAIN

    @property
    def skip(self) -> str:
        """A regular expression: not the series whose first label matches it."""
        return f"^({self.asks.skip}|{COORDINATOR})$" if self.asks.skip else ""

    @property
    def is_early(self) -> bool:
        """Whether it asks from the first push to the last one."""
        return self.trouble is None or self.trouble.begins_at_first

    @property
    def limits(self) -> Limits:
        # a loss is in its window for longer than it must hold
        hold_ms = 0.0 if self.asks.kind is Kind.LOSS else self.for_s * MS_PER_S
        return Limits(self.op, self.threshold, self.threshold if self.clear is None else self.clear, hold_ms)

    @property
    def is_whole(self) -> bool:
        """Whether it compares the series with the fewest labels, of which the others are parts."""
        return self.agg is not Aggregate.EACH or (self.trouble is not None and not self.trouble.labels)

    @property
    def explained(self) -> int:
        """By how much each client of the group that comes or goes explains the value."""
        return EXPLAINED if self.asks.id == STORM.id else 0

    @property
    def names(self) -> tuple[str, ...]:
        conditions = (each.metric for each in (*self.asks.also, *self.asks.unless))
        found = (self.metric, self.per, self.asks.position, *conditions)
        return tuple(dict.fromkeys(filter(None, found)))


REQUIRED = ("id", "metric", "op", "threshold")


def default_rules() -> list[Rule]:
    """The rules of the troubles with an alarm, and of those that many clients share."""
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
            trouble=each,
        )
        for each in (*TROUBLES, *SHARED)
        for metric in dict.fromkeys(each.metrics.values())
    ]


def silence_rules(rules: Sequence[Rule]) -> list[Rule]:
    """The rules about silence; their threshold is a number of push intervals."""
    return [each for each in rules if each.metric == SILENCE]


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
    name = f"rule {entry.get('id', number)!r}"
    for key in REQUIRED:
        if entry.get(key) in (None, ""):
            raise RuleError(f"{name}: {key} is missing")
    labels = entry.get("attrs")
    flat = {f"attrs.{key}": text for key, text in labels.items()} if isinstance(labels, dict) else {}
    table = PluginConfig(
        "", {key: value for key, value in entry.items() if key != "attrs" or not flat} | flat
    )
    try:
        rule = read_settings(Rule, table)
        table.finish()
    except ConfigError as error:
        raise RuleError(f"{name}: {error}") from error
    better = rule.clear is None or (rule.clear <= rule.threshold) == rule.op.upward
    if not better and rule.clear != rule.threshold:
        side = "no more" if rule.op.upward else "no less"
        raise RuleError(f"{name}: clear: expected {side} than the threshold, found {rule.clear:g}")
    return rule

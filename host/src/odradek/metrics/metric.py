"""The host's own metrics, each declared once, with the function that reads its value.

A room declares its metrics next to what they tell of::

    LISTENERS = Metrics[Listener]("odradek.connections", "listener")
    LISTENERS.gauge("", "{connection}", "Open connections", "channels")
    LISTENERS.counter("accepted", "{connection}", "Connections since the start")

`LISTENERS.rows(listener, listener="PLAINTEXT")` yields their values: the size of ``listener.channels`` and
the number ``listener.accepted``. Rooms count in plain integers, which are read when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from enum import IntEnum
from operator import attrgetter
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVarTuple

Sources = TypeVarTuple("Sources")
Kind = Literal["counter", "gauge"]
Value = float | Sized | Mapping[Any, float] | None
"""A number (NaN for a mean of nothing), a collection, numbers by the values of further labels, or None for no
row.
"""


class MetricRow(NamedTuple):
    """The value of a metric at one moment."""

    name: str
    attributes: Mapping[str, str]
    value: float
    """NaN for an average or a maximum of nothing."""


class Metric(NamedTuple):
    """One metric."""

    name: str
    """The name in OpenTelemetry."""
    kind: Kind
    unit: str
    """In UCUM, as OpenTelemetry wants it."""
    sentence: str
    labels: tuple[str, ...]

    def row(self, value: float, **labels: str) -> MetricRow:
        """A value. The labels are the declared ones, or some of them."""
        assert labels.keys() <= set(self.labels), f"{self.name} has no labels {', '.join(labels)}"
        return MetricRow(self.name, labels, +value)  # OTLP has no booleans: they become 0 or 1


DECLARED: Final[dict[str, Metric]] = {}
"""The metrics of all imported modules, by name."""


def declare(kind: Kind, name: str, unit: str, sentence: str, *labels: str) -> Metric:
    """Make a metric and add it to `DECLARED`."""
    assert name not in DECLARED, f"{name} is declared twice"
    return DECLARED.setdefault(name, Metric(name, kind, unit, sentence, labels))


class Metrics(Generic[*Sources]):
    """Metrics that are read from the same objects.

    Args:
        prefix: The start of their names.
        labels: The names of the labels that all of them have.
    """

    def __init__(self, prefix: str, *labels: str) -> None:
        self.prefix = prefix
        self.labels = labels
        self.members: list[tuple[Metric, Callable[[*Sources], Value]]] = []

    def counter(
        self,
        name: str,
        unit: str,
        sentence: str,
        read: str | Callable[[*Sources], Value] = "",
        by: str = "",
        kind: Kind = "counter",
    ) -> None:
        """Declare a counter.

        Args:
            name: The name after the prefix.
            unit: In UCUM, as OpenTelemetry wants it.
            sentence: The help text.
            read: The attribute of the first object that has the value, or a function of all objects; by
                default, the attribute with the metric's name. A collection stands for its size.
            by: The label whose values are the keys of a mapping, which has a number for each; several labels,
                separated by spaces, for keys that are tuples.
            kind: The kind of metric.
        """
        full_name = f"{self.prefix}.{name}".rstrip(".")
        metric = declare(kind, full_name, unit, sentence, *self.labels, *by.split())
        if isinstance(read, str):
            attribute = attrgetter(read or name.replace(".", "_"))
            self.members.append((metric, lambda *sources: attribute(sources[0])))
        else:
            self.members.append((metric, read))

    def gauge(
        self, name: str, unit: str, sentence: str, read: str | Callable[[*Sources], Value] = "", by: str = ""
    ) -> None:
        """Declare a gauge; see `counter`."""
        self.counter(name, unit, sentence, read, by, "gauge")

    def rows(self, *sources: *Sources, **labels: str) -> Iterator[MetricRow]:
        """Yield the present values, with the values of the labels that all have."""
        assert labels.keys() == set(self.labels), f"{self.prefix} has the labels {', '.join(self.labels)}"
        for metric, read in self.members:
            value = read(*sources)
            if isinstance(value, (int, float)):
                yield MetricRow(metric.name, labels, +value)
            elif isinstance(value, Mapping) and (by := metric.labels[len(self.labels) :]):
                for key, number in dict(value).items():  # copied: another thread may add keys
                    parts = key if isinstance(key, tuple) else (key,)
                    more = {label: text(part) for label, part in zip(by, parts, strict=True)}
                    yield MetricRow(metric.name, labels | more, +number)
            elif value is not None:
                yield MetricRow(metric.name, labels, len(value))


def text(key: Any) -> str:
    """A label's value: codes have their names."""
    return key.name if isinstance(key, IntEnum) else str(key)

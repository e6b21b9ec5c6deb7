"""The topic of a push: one topic for all, or one for each value of a label, up to a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

OTHER = "other"
"""Replaces the label for pushes without it, and for values beyond the limit."""
MAX_LENGTH = 249
"""After Kafka's ``Topic.MAX_NAME_LENGTH``."""
ILLEGAL = re.compile(r"[^a-zA-Z0-9._-]")
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
TEMPLATE = re.compile(r"(?P<before>[a-zA-Z0-9._-]+)\{(?P<label>[^{}]+)\}(?P<after>[a-zA-Z0-9._-]*)")
FAMILY = "family"
FAMILIES = ("producer", "consumer", "admin", "connect", "streams", "share")
FAMILY_PREFIX = "org.apache.kafka."


@dataclass(frozen=True, slots=True)
class TopicTemplate:
    """A topic name with one label in it, like ``telemetry.{family}``, or a plain name."""

    before: str
    label: str | None = None
    after: str = ""

    def can_be(self, name: str) -> bool:
        """Whether the template produces this name for some value of the label."""
        if self.label is None:
            return name == self.before
        return name.startswith(self.before) and name.endswith(self.after)

    def name(self, value: str) -> str:
        """The topic for a value of the label; characters that Kafka does not allow become ``_``."""
        room = MAX_LENGTH - len(self.before) - len(self.after)
        return f"{self.before}{ILLEGAL.sub('_', value)[:room]}{self.after}"


def read_template(text: str) -> TopicTemplate:
    """Parse a template of the configuration.

    A name must not begin with a label: clients control their ids and labels, and could choose any topic.

    Raises:
        ValueError: The template is malformed; the message says what was expected.
    """
    if text.startswith("__"):
        raise ValueError(f"expected a topic that is not internal to Kafka, found {text!r}")
    found = TEMPLATE.fullmatch(text)
    if found is None:
        if not LEGAL_NAME.fullmatch(text) or text in (".", ".."):
            raise ValueError(f"expected a topic name, or one like telemetry.{{family}}, found {text!r}")
        return TopicTemplate(text)
    if len(found["before"]) + len(found["after"]) > MAX_LENGTH - len(OTHER):
        raise ValueError(f"expected at most {MAX_LENGTH} characters, label included")
    return TopicTemplate(found["before"], found["label"], found["after"])


@dataclass(slots=True)
class TopicNames:
    """Chooses the topic of each push.

    The first ``most`` values of the label get topics of their own until the host stops; later ones share the
    topic for ``other``.
    """

    template: TopicTemplate
    most: int
    admitted: dict[str, str] = field(default_factory=dict)
    """Topic by its name with ``.`` replaced by ``_``. Kafka's metrics do not distinguish the two, so a broker
    refuses a topic that differs from another only in them."""

    def topic(self, data: bytes) -> str:
        """The topic for a push, a valid name in Kafka.

        Args:
            data: A serialized MetricsData.
        """
        if self.template.label is None:
            return self.template.before
        value = label_value(data, self.template.label)
        if value is None or value == OTHER:
            return self.template.name(OTHER)
        name = self.template.name(value)
        key = name.replace(".", "_")
        if key not in self.admitted and len(self.admitted) < self.most:
            self.admitted[key] = name
        return self.admitted.get(key) or self.template.name(OTHER)


def label_value(data: bytes, label: str) -> str | None:
    """The value of a label on the first Resource that has it; None if it is absent, empty or not text.

    Without a label ``family``, the family is derived from the names of the metrics.
    """
    try:
        message = MetricsData.FromString(data)
    except DecodeError:
        return None
    for entry in message.resource_metrics:
        for attribute in entry.resource.attributes:
            if attribute.key == label and attribute.value.string_value:
                return attribute.value.string_value
    return family(message) if label == FAMILY else None


def family(message: MetricsData) -> str:
    """The kind of client, by its first standard Kafka metric: one of `FAMILIES`, or ``other``."""
    for name in metric_names(message):
        if name.startswith(FAMILY_PREFIX):
            word = name.removeprefix(FAMILY_PREFIX).partition(".")[0]
            if word in FAMILIES:
                return word
    return OTHER


def metric_names(message: MetricsData) -> Iterator[str]:
    for entry in message.resource_metrics:
        for scope in entry.scope_metrics:
            for metric in scope.metrics:
                yield metric.name

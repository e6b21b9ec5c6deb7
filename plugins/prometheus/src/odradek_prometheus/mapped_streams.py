"""The streams of a shape as series: family and labels, shared by all clients with these streams."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from odradek.findings.node_names import node_name
from odradek.plugin import distinct_names, label_name
from odradek.temporality import Identity
from odradek_prometheus.families import LOGGED_CHARS, MAX_LOGGED, Families, Family
from odradek_prometheus.label_values import LABELS_MAX_BYTES, Labels, attributes_of, cut, joined

log = logging.getLogger(__name__)

LOGGED_LABELS: Final = 20
NODE: Final = "node_id"
NAME_COLLISION: Final = "name.collision"
"""Another metric has the name with another type."""
SERIES_COLLISION: Final = "series.collision"
"""Another stream of the client has the same name and labels."""
LABELS_TOO_LONG: Final = "labels.too.long"
"""The name, and the labels of the data point and of its Resource, have more than `LABELS_MAX_BYTES`."""
PROBLEMS: Final = {
    SERIES_COLLISION: "another one of the client has the same labels",
    LABELS_TOO_LONG: f"its name and labels have more than {LABELS_MAX_BYTES} bytes",
}


class MappedStream(NamedTuple):
    """A stream without the labels of its client."""

    family: Family
    labels: Labels
    """Of the data point, and of its stream's own Resource attributes. Sorted by name."""


class MappedStreams:
    """The streams of clients of one shape, in its order."""

    __slots__ = ("by_family", "hidden", "identities", "names", "streams", "texts")

    def __init__(
        self,
        identities: Sequence[Identity],
        streams: Sequence[MappedStream | None],
        hidden: Mapping[str, int],
    ) -> None:
        self.identities = tuple(identities)
        self.streams = tuple(streams)
        """None for a stream that is not shown."""
        self.hidden = hidden
        """The number of streams that are not shown, by reason."""
        self.names = frozenset([name for each in streams if each is not None for name, _ in each.labels])
        """The names of all labels."""
        self.texts: tuple[str, ...] = ()
        """The labels of each stream as the text formats have them, once they are needed."""
        self.by_family: dict[Family, list[int]] = {}
        for position, stream in enumerate(streams):
            if stream is not None:
                self.by_family.setdefault(stream.family, []).append(position)

    def __len__(self) -> int:
        return len(self.streams)


class StreamMapping:
    """Maps streams to series.

    Args:
        families: The families.
        normalise_node: Show Java's ``node-1`` as 1, as librdkafka does, and coordinators as such.
    """

    def __init__(self, families: Families, *, normalise_node: bool = True) -> None:
        self.families = families
        self.normalise_node = normalise_node
        self.logged: set[str] = set()

    def mapped(self, identities: Sequence[Identity]) -> MappedStreams:
        """Map the streams of a shape."""
        taken: set[MappedStream] = set()
        streams: list[MappedStream | None] = []
        hidden: Counter[str] = Counter()
        resources: dict[bytes, dict[str, str]] = {}
        for identity in identities:
            resource = identity.resource
            if resource not in resources:
                resources[resource] = {key: cut(value) for key, value in attributes_of(resource)}
            stream = self.stream(identity, resources[resource])
            reason = reason_to_hide(stream, taken)
            if reason is not None:
                hidden[reason] += 1
                if stream is not None:
                    self.log_hidden(stream, reason)
            elif stream is not None:
                taken.add(stream)
            streams.append(stream if reason is None else None)
        return MappedStreams(identities, streams, hidden)

    def log_hidden(self, stream: MappedStream, reason: str) -> None:
        name = stream.family.name
        if name not in self.logged and len(self.logged) < MAX_LOGGED:
            self.logged.add(name)
            problem = f"series is not shown to Prometheus: {PROBLEMS[reason]}"
            first = stream.labels[:LOGGED_LABELS]
            labels = {key[:LOGGED_CHARS]: value[:LOGGED_CHARS] for key, value in first}
            log.warning(problem, extra={"series": name[:LOGGED_CHARS], "labels": labels})

    def stream(self, identity: Identity, resource: Mapping[str, str]) -> MappedStream | None:
        """Map a stream; None if its name is another metric's.

        Args:
            identity: The stream.
            resource: Its own attributes of the Resource.
        """
        family = self.families.family(identity.name, identity.unit, identity.kind)
        if family is None:
            return None
        labels = self.point_labels(identity.attributes)
        names = distinct_names(resource, labels.keys())
        labels |= {names[key]: value for key, value in resource.items()}
        labels.pop("", None)
        return MappedStream(family, tuple(sorted(labels.items())))

    def point_labels(self, attributes: bytes) -> dict[str, str]:
        """The labels of a data point. Attributes whose labels have the same name have joined values."""
        found = joined((label_name(key), value) for key, value in attributes_of(attributes))
        labels = {name: cut(value) for name, value in found.items() if name}
        if self.normalise_node and NODE in labels:
            labels[NODE] = node_name(labels[NODE])
        return labels


def reason_to_hide(stream: MappedStream | None, taken: AbstractSet[MappedStream]) -> str | None:
    """Why a stream is not shown; None if it is.

    Args:
        stream: The stream; None if its name is another metric's.
        taken: The streams that are shown.
    """
    if stream is None:
        return NAME_COLLISION
    label_bytes = sum([len(name) + len(value) for name, value in stream.labels])
    if len(stream.family.name) + label_bytes > LABELS_MAX_BYTES:
        return LABELS_TOO_LONG
    return SERIES_COLLISION if stream in taken else None

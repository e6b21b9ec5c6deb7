"""The streams of a shape as series: family and labels, shared by all clients with these streams."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from odradek.plugin import distinct_names, label_name
from odradek.temporality import Identity
from odradek_prometheus.families import MAX_LOGGED, Families, Family
from odradek_prometheus.label_values import Labels, attributes_of, cut, joined, node_number

log = logging.getLogger(__name__)

NODE: Final = "node_id"
NAME_COLLISION: Final = "name.collision"
"""Another metric has the name with another type."""
SERIES_COLLISION: Final = "series.collision"
"""Another stream of the client has the same name and labels."""


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
        normalise_node: Show Java's ``node-1`` as 1, as librdkafka does.
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
        for identity in identities:
            stream = self.stream(identity)
            if stream is None:
                hidden[NAME_COLLISION] += 1
            elif stream in taken:
                hidden[SERIES_COLLISION] += 1
                self.log_collision(stream)
                stream = None
            else:
                taken.add(stream)
            streams.append(stream)
        return MappedStreams(identities, streams, hidden)

    def log_collision(self, stream: MappedStream) -> None:
        name = stream.family.name
        if name not in self.logged and len(self.logged) < MAX_LOGGED:
            self.logged.add(name)
            problem = "series is not shown to Prometheus: another one of the client has the same labels"
            log.warning(problem, extra={"series": name, "labels": dict(stream.labels)})

    def stream(self, identity: Identity) -> MappedStream | None:
        """Map a stream; None if its name is another metric's."""
        family = self.families.family(identity.name, identity.unit, identity.kind)
        if family is None:
            return None
        labels = self.point_labels(identity.attributes)
        others = dict(attributes_of(identity.resource))
        names = distinct_names(others, labels.keys())
        labels |= {names[key]: cut(value) for key, value in others.items()}
        labels.pop("", None)
        return MappedStream(family, tuple(sorted(labels.items())))

    def point_labels(self, attributes: bytes) -> dict[str, str]:
        """The labels of a data point. Attributes whose labels have the same name have joined values."""
        found = joined((label_name(key), value) for key, value in attributes_of(attributes))
        labels = {name: cut(value) for name, value in found.items() if name}
        if self.normalise_node and NODE in labels:
            labels[NODE] = node_number(labels[NODE])
        return labels

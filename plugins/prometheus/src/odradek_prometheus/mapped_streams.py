"""The streams of a shape as series: family and labels, shared by all clients with these streams."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from odradek.plugin import distinct_names, label_name
from odradek.temporality import Identity
from odradek_prometheus.families import Families, Family
from odradek_prometheus.label_values import Labels, attributes_of, cut, joined, node_number

log = logging.getLogger(__name__)

NODE: Final = "node_id"


class MappedStream(NamedTuple):
    """A stream without the labels of its client."""

    family: Family
    labels: Labels
    """Of the data point, and of what else tells the streams of a client apart. Sorted by name."""


class MappedStreams:
    """The streams of clients of one shape, in its order."""

    __slots__ = ("by_family", "identities", "names", "streams", "texts")

    def __init__(self, identities: Sequence[Identity], streams: Sequence[MappedStream | None]) -> None:
        self.identities = tuple(identities)
        self.streams = tuple(streams)
        """None for a stream that is not shown."""
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
        self.dropped: Counter[str] = Counter()
        """Streams that are not shown, by reason; of each shape once."""

    def mapped(self, identities: Sequence[Identity]) -> MappedStreams:
        """Map the streams of a shape."""
        taken: set[MappedStream] = set()
        streams = [self.unique(self.stream(identity), taken) for identity in identities]
        return MappedStreams(identities, streams)

    def unique(self, stream: MappedStream | None, taken: set[MappedStream]) -> MappedStream | None:
        """The stream unless another one of the client is the same series."""
        if stream is None:
            self.dropped["name.collision"] += 1
            return None
        if stream in taken:
            self.dropped["series.collision"] += 1
            problem = "series is not shown to Prometheus: another one of the client has the same labels"
            log.warning(problem, extra={"series": stream.family.name, "labels": dict(stream.labels)})
            return None
        taken.add(stream)
        return stream

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

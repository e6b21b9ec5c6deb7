"""Requests with the maximum number of elements in one of their arrays, for every array of every API.

A request is filled by the names of its fields, so that its elements reach the host's own work: topics,
partitions, groups and users that exist or do not exist (`Names`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from odradek.wire.codec import MAX_ELEMENTS
from odradek.wire.config_resource import ResourceType
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf, layout
from odradek.wire.types import Blob, Scalar

WIDE = "wide"
"""The topic with many partitions."""
NUMBERS: dict[str, Any] = {
    "acks": -1,
    "timeout_ms": 60_000,
    "max_bytes": 100 << 20,
    "partition_max_bytes": 1 << 20,
    "num_partitions": 1,
    "replication_factor": 1,
    "iterations": 4096,
    "mechanism": 1,
    "resource_type": int(ResourceType.TOPIC),
    "upgrade_type": 1,
    "max_version_level": 1,
    "session_timeout_ms": 30_000,
    "rebalance_timeout_ms": 30_000,
    "generation_id_or_member_epoch": -1,
    "generation_id": -1,
    "member_epoch": -1,
    "last_fetched_epoch": -1,
    "current_leader_epoch": -1,
    "leader_epoch": 0,
    "response_partition_limit": 2_000,
    "producer_id": 0,
    "value": 1_000_000.0,
    "resource_types": int(ResourceType.TOPIC),
    "broker_ids": 1,
    "replicas": 1,
    "session_id": 0,
    "session_epoch": -1,
    "transaction_timeout_ms": 60_000,
    "resource_pattern_type": 3,
    "operation": 3,
    "permission_type": 3,
    "resource_type_filter": 2,
    "pattern_type_filter": 3,
}
"""Values of numbers; all others have their defaults."""
PARTITIONS = frozenset({"index", "partition", "partition_index", "partition_indexes", "partitions"})
NULLS = frozenset({"transactional_id", "group_instance_id", "cluster_id", "cursor", "server_assignor"})
"""Fields that are null if they may be. Everything else has a value."""


class Names(enum.Enum):
    """The names of the elements."""

    SAME = "same"
    """One existing thing, many times."""
    KNOWN = "known"
    """Existing things."""
    UNKNOWN = "unknown"
    """Things that do not exist, all different."""


class Topic(NamedTuple):
    """A topic of the host."""

    name: str
    id: bytes
    partitions: int


@dataclass(frozen=True, slots=True)
class Contents:
    """The existing things of a host."""

    topics: Sequence[Topic]
    """The first has many partitions."""
    groups: Sequence[str]
    users: Sequence[str]
    clients: Sequence[str]
    transactional_ids: Sequence[str]
    batch: bytes
    """The batch that a producer sends to each partition."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Fills one request."""

    request: type[Any]
    contents: Contents
    names: Names
    full: str
    """The path of the array with many elements."""
    count: int

    def structure(self, shape: StructOf, path: str, index: int, inside: bool) -> Any:
        """A structure; ``inside`` means that it is one of the many, or in one of them."""
        values = {field.name: self.field(field, path, index, inside) for field in shape.fields}
        values |= {field.name: self.field(field, path, index, inside) for field in shape.tagged if path == ""}
        return shape.cls(**values)

    def field(self, field: Field, path: str, index: int, inside: bool) -> Any:
        own = f"{path}.{field.name}".strip(".")
        if field.nullable and field.name in NULLS:
            return None
        if isinstance(field.kind, ArrayOf):
            return self.array(field, field.kind.element, own, index, inside)
        if isinstance(field.kind, StructOf):
            return self.structure(field.kind, own, index, inside)
        return self.value(field, field.kind, own, index)

    def array(self, field: Field, element: Kind, path: str, index: int, inside: bool) -> list[Any]:
        """Many elements, or one if the array is on the path to them or inside them."""
        if path == self.full:
            return [self.element(field, element, path, each, True) for each in range(self.count)]
        if inside or self.full.startswith(path + "."):
            return [self.element(field, element, path, index, inside)]
        return []

    def element(self, field: Field, element: Kind, path: str, index: int, inside: bool) -> Any:
        if isinstance(element, StructOf):
            return self.structure(element, path, index, inside)
        return self.value(replace(field, kind=element), element, path, index)

    def value(self, field: Field, kind: Kind, path: str, index: int) -> Any:
        """A number, text or bytes."""
        if self.names is Names.SAME:
            index = 0
        if isinstance(kind, Scalar):
            return self.number(field, index)
        if kind is Blob.STRING:
            return self.text(field.name, path, index)
        if kind is Blob.UUID:
            return self.topic(index).id if self.names is not Names.UNKNOWN else index.to_bytes(16)
        return self.contents.batch if kind is Blob.RECORDS else b"x" * 32

    def number(self, field: Field, index: int) -> Any:
        if field.name in PARTITIONS:
            if self.names is Names.UNKNOWN:
                return index + 1_000_000
            return index % self.contents.topics[0].partitions if self.many_of_one_topic else 0
        if field.name == "count":
            return 2
        return NUMBERS.get(field.name, field.default() if not isinstance(field.default(), list) else 0)

    @property
    def many_of_one_topic(self) -> bool:
        """Whether the many are partitions of one topic."""
        last = self.full.rpartition(".")[2]
        return "." in self.full and last in PARTITIONS | {"partition_data"}

    def topic(self, index: int) -> Topic:
        topics = self.contents.topics
        return topics[0] if self.many_of_one_topic else topics[index % len(topics)]

    def text(self, name: str, path: str, index: int) -> str:
        """A text that fits the name of its field."""
        known = self.known_text(name, path, index)
        if known is not None:
            return known
        if self.names is Names.UNKNOWN:
            return f"unknown-{index}"
        if "group" in name or name == "coordinator_keys":
            return pick(self.contents.groups, index)
        if name.startswith("transactional_id"):
            return pick(self.contents.transactional_ids, index)
        if name == "entity_name" or name == "match":
            return pick(self.contents.clients, index)
        if path.startswith(("users", "deletions", "upsertions")):
            return pick(self.contents.users, index)
        return self.topic(index).name

    def known_text(self, name: str, path: str, index: int) -> str | None:
        """A text that does not name a thing; None for any other."""
        if name == "entity_type":
            return "client-id"
        if name == "key":
            return "producer_byte_rate"
        if path.endswith("configs.name") or name == "configuration_keys":
            return f"retention.ms{index if self.full.endswith(('configs', 'keys')) else ''}"
        if path.endswith("configs.value"):
            return "1000000"
        if name in ("member_id", "committed_metadata", "rack_id", "reason"):
            return f"{name}-{index}"
        return None


def pick(names: Sequence[str], index: int) -> str:
    return names[index % len(names)]


def arrays(shape: StructOf, path: str = "") -> Iterator[tuple[str, int]]:
    """The path of every array, and how many arrays each of its elements has."""
    for field in shape:
        own = f"{path}.{field.name}".strip(".")
        if isinstance(field.kind, ArrayOf):
            element = field.kind.element
            nested = len(list(arrays(element))) if isinstance(element, StructOf) else 0
            yield own, nested
            if isinstance(element, StructOf):
                yield from arrays(element, own)
        elif isinstance(field.kind, StructOf):
            yield from arrays(field.kind, own)


FILTER: Final = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
SMALLEST: Final = {"ProduceRequest": {"acks": 1}, "DescribeAclsRequest": dict.fromkeys(FILTER, 1)}
"""The fields, besides the defaults, that make a request valid."""


def smallest(request: type[Any]) -> Any:
    """A request with nothing but what it needs to be valid."""
    return request(**SMALLEST.get(request.__name__, {}))


def full_requests(
    request: type[Any], version: int, contents: Contents, most: int = MAX_ELEMENTS
) -> Iterator[tuple[str, Any]]:
    """A request for each array and each kind of names, with a title."""
    shape = layout(request, version)
    for path, nested in arrays(shape):
        outer = path.count(".") + 1
        for names in Names:
            count = (most - outer) // (1 + nested)
            filling = Filling(request, contents, names, path, count)
            made = filling.structure(shape, "", 0, False)
            yield f"{request.__name__.removesuffix('Request')}, {count} {names.value} {path}", made

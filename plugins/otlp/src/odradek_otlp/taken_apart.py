"""A ResourceMetrics taken apart, so that points get the Resource whose labels are distinct from theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics, ScopeMetrics

from odradek.plugin import label_name

Names = tuple[str, ...]
"""The keys of a Resource's attributes, in their order."""


class TakenApart:
    """One ResourceMetrics, as one for each set of names of its labels."""

    def __init__(
        self, entry: ResourceMetrics, renamed: Callable[[Sequence[str], Iterable[str]], Names]
    ) -> None:
        """Prepare.

        Args:
            entry: Unchanged.
            renamed: Gives the names of attributes beside these labels of a data point.
        """
        self.entry = entry
        self.renamed = renamed
        self.attributes = tuple([each.key for each in entry.resource.attributes])
        self.names_by_keys: dict[Names, Names] = {}
        self.by_names: dict[Names, ResourceMetrics] = {}
        self.renamed_points = 0

    def parts(self) -> Iterable[ResourceMetrics]:
        """The entries, each with its Resource, in the order of their first points."""
        for scope in self.entry.scope_metrics:
            targets: dict[Names, ScopeMetrics] = {}
            for metric in scope.metrics:
                self.distribute(metric, scope, targets)
        for names, part in self.by_names.items():
            part.resource.CopyFrom(self.entry.resource)
            for attribute, name in zip(part.resource.attributes, names, strict=True):
                attribute.key = name
        return self.by_names.values()

    def distribute(self, metric: Metric, scope: ScopeMetrics, targets: dict[Names, ScopeMetrics]) -> None:
        """Copy a metric to the scope of each set of names that its points need."""
        which = metric.WhichOneof("data")
        points = getattr(metric, which).data_points if which else ()
        grouped: dict[Names, list[Any]] = {} if points else {self.attributes: []}
        for point in points:
            grouped.setdefault(self.names_for(point), []).append(point)
        for names, members in grouped.items():
            if names not in targets:
                targets[names] = self.scope_for(names, scope)
            copy = targets[names].metrics.add()
            copy.CopyFrom(metric)
            if which and len(grouped) > 1:
                kept = getattr(copy, which).data_points
                del kept[:]
                kept.extend(members)

    def names_for(self, point: Any) -> Names:
        """The names of the Resource's attributes for a data point."""
        keys = tuple([each.key for each in point.attributes])
        names = self.names_by_keys.get(keys)
        if names is None:
            names = self.names_by_keys[keys] = self.renamed(self.attributes, map(label_name, keys))
        self.renamed_points += names != self.attributes
        return names

    def scope_for(self, names: Names, scope: ScopeMetrics) -> ScopeMetrics:
        """A new scope, without metrics, below the Resource with these names."""
        if names not in self.by_names:
            self.by_names[names] = ResourceMetrics(schema_url=self.entry.schema_url)
        target = self.by_names[names].scope_metrics.add(schema_url=scope.schema_url)
        if scope.HasField("scope"):
            target.scope.CopyFrom(scope.scope)
        return target

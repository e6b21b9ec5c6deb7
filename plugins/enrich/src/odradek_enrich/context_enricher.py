"""Chosen labels from the context of a request, and static ones."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.plugin import CONTEXT_LABELS, RequestContext


class ContextEnricher:
    """Sets the chosen labels and the static ones."""

    def __init__(self, names: tuple[str, ...], static: Mapping[str, str]) -> None:
        self.chosen = [(name, CONTEXT_LABELS[name]) for name in names]
        self.static = dict(static)

    def reload(self, replacement: ContextEnricher) -> None:
        """Set the labels of another table from now on."""
        self.chosen, self.static = replacement.chosen, replacement.static

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        """The labels of a client instance, as a new mapping."""
        labels = dict(self.static)
        for name, label in self.chosen:
            value = label(client_instance_id, context)
            if value is not None:
                labels[name] = value
        return labels

"""The name of the cluster that metrics are about, so that those of several clusters do not mix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class ClusterName:
    """The name of a program's cluster: ``cluster.name``, by default the id of the cluster."""

    given: str | None = None
    """``cluster.name``."""
    cluster_id: str | None = None
    """None until it is known."""

    @property
    def text(self) -> str | None:
        """The name; None until it is known."""
        return self.given or self.cluster_id

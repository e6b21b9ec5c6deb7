"""The id of the cluster, which is also the sign that a metadata file has been used."""

from __future__ import annotations

from collections.abc import Callable

from odradek.metadata.store import CLUSTER_ID, MetadataStore
from odradek.wire.uuid_text import uuid_text


def cluster_id(metadata: MetadataStore, random_uuid: Callable[[], bytes]) -> str:
    """The id of the cluster; made at the first start."""
    stored = metadata.value(CLUSTER_ID)
    if stored is not None:
        return stored
    made = uuid_text(random_uuid())
    metadata.put_value(CLUSTER_ID, made)
    return made

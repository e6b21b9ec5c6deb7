"""Splits a batch into requests that may be in flight at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.plugin import TelemetryRecord

REQUEST_BYTES = 1 << 20
REQUEST_RECORDS = 40
"""Larger requests are hardly cheaper per push."""


def requests_of(batch: Sequence[TelemetryRecord], most: int) -> list[list[TelemetryRecord]]:
    """Split a batch into requests of similar size.

    All pushes of a client instance are in one request, in order, so a later push cannot overtake.

    Args:
        batch: The records.
        most: Limit of requests; a small batch is split into fewer.
    """
    size_bytes = sum([len(record.payload.data) for record in batch])
    wanted = max(-(-size_bytes // REQUEST_BYTES), -(-len(batch) // REQUEST_RECORDS))
    if min(wanted, most) <= 1:
        return [list(batch)]
    requests: list[list[TelemetryRecord]] = [[] for _ in range(min(wanted, most))]
    sizes = [0] * len(requests)
    chosen: dict[bytes, int] = {}
    for record in batch:
        instance_id = record.payload.client_instance_id
        if instance_id not in chosen:
            chosen[instance_id] = sizes.index(min(sizes))
        sizes[chosen[instance_id]] += len(record.payload.data)
        requests[chosen[instance_id]].append(record)
    return [request for request in requests if request]

"""The accounts of ``odradek forward`` by partition."""

from __future__ import annotations

from odradek.meters.instrument import Instrument

FORWARD_INSTRUMENTS = {
    "forwarder-partitions": Instrument(
        "odradek.forwarder.partitions", "gauge", "{partition}", "Partitions assigned to this process"
    ),
    "forwarder-partition-queued": Instrument(
        "odradek.forwarder.partition.queued",
        "gauge",
        "{push}",
        "Pushes of a partition that are waiting or being delivered",
    ),
}

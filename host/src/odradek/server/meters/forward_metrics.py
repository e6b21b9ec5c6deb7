"""The accounts of ``odradek forward`` by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from odradek.server.meters.instrument import Instrument
from odradek.telemetry.client_metrics_stats import MetricRow

if TYPE_CHECKING:
    from odradek.server.plugins.forwarder_runner import ForwarderRunner
    from odradek.server.plugins.group_feed import GroupFeed

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


def queued_by_partition(runner: ForwarderRunner) -> Counter[int]:
    """The records that wait or are being delivered. Their sum is that of the forwarder's accounts."""
    feed = runner.feed
    assert feed is not None
    with runner.lock:
        ends, cursor = feed.source.ends(), feed.cursor
        found = Counter({index: ends.get(index, at) - at for index, at in cursor.expected.items()})
        found.update(record.partition for record in runner.unsettled())
    return found


def forward_rows(runner: ForwarderRunner, feed: GroupFeed) -> Iterator[MetricRow]:
    """The partitions of one forwarder."""
    labels = {"plugin": runner.name}
    yield MetricRow("forwarder-partitions", "gauge", labels, len(feed.owned))
    for index, records in sorted(queued_by_partition(runner).items()):
        partition = labels | {"partition": str(index)}
        yield MetricRow("forwarder-partition-queued", "gauge", partition, records)

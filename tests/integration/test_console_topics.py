"""The topics of a cluster as the console asks for them, at a host."""

from __future__ import annotations

from odradek import testing
from odradek.client.admin import AdminClient
from odradek.client.producer import Producer
from odradek.wire.record import Record
from odradek_console.cluster_rows import TopicListing
from odradek_console.reading.cluster_view import ClusterView

WRITTEN_MS = 1_790_000_000_000


def test_topics_have_the_time_of_their_last_record() -> None:
    with testing.host() as host:
        host.topics.create("orders", partitions=3)
        host.topics.create("empty")
        with AdminClient(host.bootstrap) as admin:
            records = [Record(None, b"x", timestamp_ms=WRITTEN_MS + each) for each in range(3)]
            Producer(admin).send({("orders", 1): records})

        found = ClusterView(lambda: AdminClient(host.bootstrap), "t").topics()

    assert found == [
        TopicListing(name="empty", partitions=1, last_ms=None),
        TopicListing(name="orders", partitions=3, last_ms=WRITTEN_MS + 2),
    ]

"""The telemetry topic of a host or a cluster, found by what is in it."""

from __future__ import annotations

import contextlib
from typing import Final

from odradek.broker.spool_settings import SpoolSettings
from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.fetch import Reader
from odradek.client.resources import LATEST, ConfigResource
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record

USUAL: Final = SpoolSettings().topic_name
KEY: Final = "telemetry.topic.name"
WORD: Final = "telemetry"
MOST: Final = 20
"""Topics that are looked into."""


def telemetry_topic(admin: AdminClient) -> str:
    """The topic that a host is told to use; of a cluster the usual one, or another with pushes in it. The
    usual name if there is none.

    Raises:
        ClientError: The cluster does not answer.
    """
    metadata = admin.metadata()
    broker = ConfigResource.broker(metadata.brokers[0].node_id)
    with contextlib.suppress(RequestFailed):  # it does not show its settings
        for entry in admin.describe_configs([broker], keys=[KEY])[broker]:
            if entry.value:
                return entry.value
    partitions = {
        each.name: [(each.name, row.partition_index) for row in each.partitions]
        for each in metadata.topics
        if each.name
    }
    if USUAL in partitions:
        return USUAL
    named = sorted(name for name in partitions if WORD in name.lower())[:MOST]
    return next((name for name in named if has_pushes(admin, partitions[name])), USUAL)


def has_pushes(admin: AdminClient, partitions: list[tuple[str, int]]) -> bool:
    """Whether the newest record of a partition is a push."""
    ends = {at: each.offset for at, each in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
    reader = Reader(admin.cluster, {at: end - 1 for at, end in ends.items() if end})
    with contextlib.suppress(RequestFailed):  # not readable, or its last record was deleted
        for each in reader.poll():
            with contextlib.suppress(MalformedTelemetry):
                decode_record(each.record.key, each.record.value, each.record.headers)
                return True
    return False

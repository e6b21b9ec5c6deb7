"""What a client sees of the promises at the end: committed records and offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lives.clients import Client
from lives.sharers import visit
from lives.truth import Truth
from lives.world import PARTITIONS, PLAIN, TOPIC, World
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek.wire.record_batch import record_batches, records

READ_COMMITTED = 1
TOPIC_NAMES_VERSION = 12


async def audit(world: World) -> list[str]:
    """Everything that a new client finds wrong."""
    client = Client(world.loop, "auditor")
    await client.connect(PLAIN)
    await client.introduce()
    found = [await missing_offset(client, world.truth, key) for key in world.truth.committed]
    await visit(client)
    for partition in range(PARTITIONS):
        found += list(wrong_records(await committed_values(client, partition), world.truth, partition))
    client.leave()
    return [each for each in found if each]


async def missing_offset(client: Client, truth: Truth, key: tuple[str, str, int]) -> str:
    """The last acknowledged offset of a group is stored, or one that was sent after it."""
    group, topic, partition = key
    acknowledged, sent = truth.committed[key]
    topics = [OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    answer = await client.ask(OffsetFetchRequest(group_id=group, topics=topics), 7)
    offset = answer.topics[0].partitions[0].committed_offset
    if acknowledged <= offset <= sent:
        return ""
    return f"group {group} has {offset} for {topic}-{partition}, not {acknowledged} to {sent}"


async def committed_values(client: Client, partition: int) -> dict[int, bytes | None]:
    """What a consumer with ``read_committed`` gets, by offset."""
    offset, found, aborted = 0, dict[int, bytes | None](), set[tuple[int, int]]()
    while True:
        row = await fetched(client, partition, offset)
        aborted |= {(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()}
        began = offset
        for header, batch in record_batches(row.records or b""):
            found_aborted = [first for producer, first in aborted if producer == header.producer_id]
            if header.is_control:
                aborted -= {
                    (header.producer_id, first) for first in found_aborted if first < header.base_offset
                }
            elif not any(first <= header.base_offset for first in found_aborted):
                found |= {each.offset: each.value for each in records(batch, header)}
            offset = header.next_offset
        if offset == began:
            return found


async def fetched(client: Client, partition: int, offset: int) -> Any:
    """One answer to Fetch.

    Raises:
        AssertionError: Part of the partition cannot be read.
    """
    rows = [FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)]
    request = FetchRequest(isolation_level=READ_COMMITTED, topics=[FetchTopic(topic=TOPIC, partitions=rows)])
    answer = await client.ask(request, TOPIC_NAMES_VERSION)
    (row,) = answer.responses[0].partitions
    assert not row.error_code, row
    assert row.high_watermark == row.last_stable_offset, "a transaction is open"
    return row


def wrong_records(visible: dict[int, bytes | None], truth: Truth, partition: int) -> Iterator[str]:
    """Committed records are visible, aborted ones are not."""
    hidden = {
        offset for (_, index, offset), value in truth.records.items()
        if index == partition and visible.get(offset) != value
    }  # fmt: skip
    if hidden:
        yield f"committed records of partition {partition} are not visible: {sorted(hidden)}"
    if shown := {offset for _, index, offset in truth.aborted if index == partition} & visible.keys():
        yield f"aborted records of partition {partition} are visible: {sorted(shown)}"

"""Open the metadata file. If it is lost or damaged, refuse, or rebuild the topics from the partitions.

A host that starts without its metadata beside the logs would take every partition for that of an unknown
topic.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

from odradek.broker.topics import MAX_PARTITIONS, TOPIC_RESOURCE, fault_of
from odradek.log.partition_folder import (
    STRAY_SUFFIX,
    PartitionFolder,
    partition_folders,
    topic_id_of,
    was_used,
)
from odradek.metadata.damage import NEVER_USED, damage, loss, set_aside
from odradek.metadata.schema import refusal, version_in
from odradek.metadata.store import TRANSACTIONS_LOST, MetadataStore, StoreError, TopicRow
from odradek.waiting.clock import Clock
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import uuid_text

log = logging.getLogger(__name__)

KEEP_ALL = {"cleanup.policy": "delete", "retention.bytes": "-1", "retention.ms": "-1"}
"""The configuration of a recovered topic. Its own is lost, and the defaults may delete what it has kept."""
ADVICE = (
    "restore the file from a backup (if it is in another directory, set data.dir), or start once with"
    " --recover-metadata to rebuild the topics from their partitions"
)


def open_metadata(
    path: Path,
    directories: Sequence[Path],
    now_ms: int,
    clock: Clock | None = None,
    *,
    recover: bool = False,
) -> MetadataStore:
    """Open the metadata file, which may be new.

    Args:
        path: The file.
        directories: The log directories. Nothing is written to them.
        now_ms: The time of the start.
        clock: Paces the log of failures.
        recover: Rebuild the topics if the file is lost or damaged.

    Raises:
        StoreError: The file cannot be used, or it is lost although logs hold records. It is unchanged.
        OSError: A log directory cannot be read, or the damaged file cannot be renamed.
    """
    refused = refusal(version_in(path) or 0)
    if refused is not None:
        raise StoreError(f"{path} {refused}")
    problem = problem_of(path, directories)
    if problem is None:
        if recover:
            log.warning("nothing to recover: the metadata file is intact", extra={"file": str(path)})
        return MetadataStore(path, clock)
    if not recover:
        raise StoreError(f"{problem}; {ADVICE}")
    log.error("recovering the metadata file", extra={"problem": problem})
    if damage(path) is not None or loss(path) != NEVER_USED:
        for aside in set_aside(path, f".{uuid4().hex}{STRAY_SUFFIX}"):
            log.error("set a metadata file aside", extra={"set_aside": str(aside)})
    metadata = MetadataStore(path, clock)
    try:
        fill(metadata, recovered_topics(directories), now_ms)
    except BaseException:
        metadata.close()
        raise
    return metadata


def problem_of(path: Path, directories: Sequence[Path]) -> str | None:
    """Why a host must not start with this file, although it can be rebuilt; None if it may."""
    damaged = damage(path)
    if damaged is not None:
        return f"{path} is damaged: {damaged}"
    lost = loss(path)
    if lost is not None:
        for folder in folders_in(directories):
            if was_used(folder.path):
                return f"{path} {lost}, but the logs hold records, such as {folder.path}"
    return None


def folders_in(directories: Sequence[Path]) -> Iterator[PartitionFolder]:
    for directory in directories:
        yield from partition_folders(directory)


def recovered_topics(directories: Sequence[Path]) -> list[TopicRow]:
    """The topics whose partitions are in the directories, by name.

    If the partitions of a topic store different ids, the id of most of them counts. A topic is left out if
    its name is not legal, or if it has the id of a topic with more partitions.

    Raises:
        OSError: A directory cannot be read.
    """
    found: dict[str, list[PartitionFolder]] = defaultdict(list)
    for folder in folders_in(directories):
        if fault_of(folder.topic) is None and folder.index < MAX_PARTITIONS:
            found[folder.topic].append(folder)
    rows: dict[bytes, TopicRow] = {}
    for name, folders in sorted(found.items(), key=lambda each: (-len(each[1]), each[0])):
        ids = Counter(topic_id_of(each.path) for each in sorted(folders, key=lambda each: each.index))
        stored = [each for each, _ in ids.most_common() if each is not None and each != NIL_UUID]
        topic_id = stored[0] if stored else uuid4().bytes
        if topic_id not in rows:
            rows[topic_id] = TopicRow(name, topic_id, 1 + max(each.index for each in folders))
    return sorted(rows.values(), key=lambda row: row.name)


def fill(metadata: MetadataStore, topics: Sequence[TopicRow], now_ms: int) -> None:
    """Store recovered topics, all or none."""
    with metadata.transaction():
        for topic in topics:
            metadata.put_topic(topic)
            metadata.put_resource(TOPIC_RESOURCE, topic.name, KEEP_ALL)
        # The logs know producers of earlier ids, so a reused id would make new records look like duplicates.
        # A host gives out fewer than one id a millisecond, so none has reached the time.
        metadata.put_value("next.producer.id", str(now_ms))
        metadata.put_value(TRANSACTIONS_LOST, "true")
    for topic in topics:
        log.warning(
            "recovered a topic; it keeps all records until its retention is configured",
            extra={"topic": topic.name, "id": uuid_text(topic.id), "partitions": topic.partitions},
        )
    log.warning(
        "recovered the topics; configurations, subscriptions, quotas, users, committed offsets and"
        " transactions are lost"
    )

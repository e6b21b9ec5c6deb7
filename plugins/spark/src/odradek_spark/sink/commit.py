"""Commits a batch of the sink: one commit for each table, ``pushes`` last.

A batch is identified twice. Spark's query id and number of the batch say whether the query has written it
already, and the offsets of its records say whether anyone has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from deltalake import DeltaTable
from pyarrow import fs

from odradek_spark.conditions import Condition
from odradek_spark.sink.written import Written, one_topic
from odradek_tables.dataset import Dataset, DatasetError, Ranges, source_id
from odradek_tables.decoder.decode import Counts
from odradek_tables.files import Manifest, file_system
from odradek_tables.log import SOURCE_RANGES
from odradek_tables.schemas import INGESTED, PUSHES, Table

FURTHER: Final = "furtherPushes"
"""Key in the history of a table: the pushes of records after their first one, if there are any."""


class TableConflict(Condition, DatasetError):
    """Another query has written to the table."""

    condition = "ODRADEK_TABLE_CONFLICT"


class NotShared(Condition, DatasetError):
    """The driver does not see the files of a worker."""

    condition = "ODRADEK_NOT_SHARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """All that the tasks of a batch have written."""

    query_id: str | None
    """None for a batch write."""
    number: int
    """Of the batch in its query; 0 for a batch write."""
    topic: str
    manifests: Sequence[Manifest]
    ranges: Ranges
    counts: Counts
    allow_new_checkpoint: bool = False

    @classmethod
    def of(
        cls, messages: Iterable[Written | None], number: int, *, allow_new_checkpoint: bool = False
    ) -> Batch:
        query_id = topic = None
        manifests: list[Manifest] = []
        ranges: dict[int, tuple[int, int]] = {}
        counts = Counts()
        for each in messages:
            if each is None:
                continue
            query_id, topic = each.query_id, one_topic(topic, each.topic)
            manifests += each.manifests
            counts += each.counts
            for part, (start, stop) in each.ranges.items():
                low, high = ranges.get(part, (start, stop))
                ranges[part] = min(low, start), max(high, stop)
        return cls(
            query_id=query_id,
            number=number,
            topic=topic or "",
            manifests=manifests,
            ranges=ranges,
            counts=counts,
            allow_new_checkpoint=allow_new_checkpoint,
        )

    @property
    def numbers(self) -> dict[str, int]:
        found = {source_id(self.topic, part): stop for part, (_, stop) in self.ranges.items()}
        return found if self.query_id is None else found | {query_app(self.query_id): self.number}

    def info(self, lost: int) -> dict[str, Any]:
        found: dict[str, Any] = {"batch": self.number}
        if self.query_id is not None:
            found["query"] = self.query_id
        if not self.topic:
            return found
        found |= {
            "sourceOffsets": {part: stop for part, (_, stop) in self.ranges.items()},
            SOURCE_RANGES: self.ranges,
            "pushes": self.counts.pushes,
            "points": self.counts.points,
            "deadLetters": self.counts.dead_letters,
            "lost": lost,
            "payloadBytes": self.counts.payload_bytes,
        }
        return found | ({FURTHER: self.counts.further} if self.counts.further else {})

    def is_new(self, table: str, current: DeltaTable) -> bool:
        done = None if self.query_id is None else current.transaction_version(query_app(self.query_id))
        if done is not None and done >= self.number:
            return False
        ends = {part: current.transaction_version(source_id(self.topic, part)) for part in self.ranges}
        if ends and all(ends[part] == stop for part, (_, stop) in self.ranges.items()):
            return False
        for part, (start, _) in self.ranges.items():
            if start < (ends[part] or 0):
                raise TableConflict(self.taken(table, part, ends[part]))
        if done is None and not self.allow_new_checkpoint:
            self.check_beginning(table, current, ends)
        return True

    def taken(self, table: str, part: int, end: int | None) -> str:
        start, stop = self.ranges[part]
        return (
            f"{table}: the table has {self.topic}-{part} up to offset {end}, but the next batch is {start} "
            f"to {stop}: another ingester writes to this dataset, or the topic was deleted and created "
            "again. Stop the other ingester and delete this checkpoint, or choose another dataset"
        )

    def of_other_tables(self, place: str) -> str:
        return (
            f"{place}: there is no data of this query, but its checkpoint has {self.number} batches: it "
            "belongs to another dataset. Delete the checkpoint"
        )

    def check_beginning(self, table: str, current: DeltaTable, ends: dict[int, int | None]) -> None:
        """Check the first batch of a query in a table.

        Raises:
            TableConflict: The table has rows of other queries, and the query does not continue them; or the
                checkpoint is one of other tables.
        """
        known = {part: end for part, end in ends.items() if end is not None}
        for part, end in known.items():
            start = self.ranges[part][0]
            if start != end:
                raise TableConflict(
                    f"{table}: the table has {self.topic}-{part} up to offset {end}, but this query begins "
                    f"at {start}. Continue with a new checkpoint and startingOffsets="
                    f"""{{"{self.topic}": {{"{part}": {end}}}}}, or accept the gap with """
                    "allowNewCheckpoint=true"
                )
        if known:
            return
        if self.number > 0 and self.query_id is not None:
            raise TableConflict(self.of_other_tables(table))
        if self.query_id is not None and self.manifests and current.file_uris():
            raise TableConflict(
                f"{table}: another query has written to the table. Continue with its checkpoint, or add to "
                "the table with allowNewCheckpoint=true"
            )


def query_app(query_id: str) -> str:
    return f"query:{query_id}"


def commit(dataset: Dataset, batch: Batch, tables: Sequence[Table] = INGESTED) -> bool:
    """Commit a batch to all tables, except those that already have it.

    Returns:
        Whether the last table did not have it yet.

    Raises:
        DatasetError: The tables cannot be written.
        NotShared: The workers wrote to another place.
        TableConflict: Another query has written to a table.
    """
    if not batch.ranges and not batch.manifests and batch.number > 0:
        return False
    if batch.number == 0:
        dataset.create(tables)
    elif dataset.open(tables[-1]) is None:
        raise TableConflict(batch.of_other_tables(dataset.root))
    check_written(dataset, batch.manifests)
    lost = lost_before(dataset, batch) if batch.query_id is not None else 0
    is_new = False
    for table in tables:
        files = [each for each in batch.manifests if each.table == table.name]
        wanted = partial(batch.is_new, dataset.uri(table))
        is_new = dataset.append(table, files, batch.numbers, batch.info(lost), wanted)
    return is_new


def lost_before(dataset: Dataset, batch: Batch) -> int:
    """The offsets between the last batch and this one: retention deleted their records, or they have none."""
    ends = dataset.source_offsets(PUSHES, batch.topic, list(batch.ranges)) if batch.ranges else {}
    return sum(max(0, batch.ranges[part][0] - end) for part, end in ends.items())


def check_written(dataset: Dataset, manifests: Iterable[Manifest]) -> None:
    """Check that the files are in the dataset: a local path may be another disk on each worker."""
    system, base = file_system(dataset.root)
    for found in system.get_file_info([f"{base}/{each.table}/{each.path}" for each in manifests]):
        if found.type is not fs.FileType.File:
            raise NotShared(
                f"{found.path}: a worker wrote this file, but the driver does not see it. Use a dataset that "
                "driver and workers share: a shared folder, or a URI"
            )

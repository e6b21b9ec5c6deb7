"""Offsets at which ingest begins or continues. They come from the tables, with or without a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from odradek_spark.source.offsets import Offsets
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import INGESTED


def known(dataset: Dataset, topic: str, partitions: Mapping[int, object]) -> Offsets:
    """The offsets up to which all tables have the topic. The table ``pushes``, committed last, has them."""
    found: Offsets = {}
    for table in INGESTED:  # the last one counts
        found |= dataset.source_offsets(table, topic, list(partitions))
    return found


def settled(dataset: Dataset, topic: str, marks: Mapping[int, tuple[int, int]], *, latest: bool) -> Offsets:
    """The offsets at which the tables end. For a new dataset, choose the beginning and record it.

    It must be recorded because Spark does not store the first offsets, and retention moves the topic's start.

    Args:
        dataset: The dataset.
        topic: The name of the topic.
        marks: By partition: the first offset and the end offset (last + 1).
        latest: Whether a new dataset begins at the end. Partitions that are added later are read completely.
    """
    there = known(dataset, topic, marks)
    at_end = latest and not there
    begin = {part: end if at_end else first for part, (first, end) in marks.items()} | there
    for table in INGESTED:
        has = dataset.source_offsets(table, topic, list(begin))
        news = {part: (at, at) for part, at in begin.items() if part not in has}
        if news:
            dataset.commit_ranges(table, [], topic, news)
    return begin


def ahead(dataset: Dataset, topic: str, begin: Mapping[int, int]) -> Offsets:
    """The offsets up to which any table has the topic.

    They exceed ``begin`` if a batch was interrupted after it was committed to some tables only.
    """
    reached = dict(begin)
    for table in INGESTED:
        for part, end in dataset.source_offsets(table, topic, list(begin)).items():
            reached[part] = max(reached[part], end)
    return reached

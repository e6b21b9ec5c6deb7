"""Where a dataset begins in a topic, and where it goes on: its tables know, with or without a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping

from odradek_spark.source.offsets import Offsets
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import INGESTED


def known(dataset: Dataset, topic: str, partitions: Mapping[int, object]) -> Offsets:
    """Up to where all tables have the topic: ``pushes`` is committed last."""
    found: Offsets = {}
    for table in INGESTED:  # the last one counts
        found |= dataset.source_offsets(table, topic, list(partitions))
    return found


def settled(dataset: Dataset, topic: str, marks: Mapping[int, tuple[int, int]], *, latest: bool) -> Offsets:
    """Where the tables end, or begin from now on: Spark does not write the first offsets down, and where the
    topic begins moves.

    Args:
        dataset: Whose tables they are.
        topic: The name of the topic.
        marks: By partition: its first offset, and the one behind its last.
        latest: Whether a dataset that is new begins at the end. A partition that came later is read whole.
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
    """Up to where any table has the topic: more than ``begin`` where a batch was cut off between tables."""
    reached = dict(begin)
    for table in INGESTED:
        for part, end in dataset.source_offsets(table, topic, list(begin)).items():
            reached[part] = max(reached[part], end)
    return reached

"""``explanation/limits.md`` names settings and metrics that exist, and every setting that is a bound."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from contrib.docs.configuration_reference import tables

from support.metric_rows import declared
from support.reference_page import page, sections

PAGE = "explanation/limits.md"
NAMES = set(re.findall(r"`([^`]+)`", page(PAGE)))
KEYS = {each.name for each in chain(*tables().values())}
METRICS = set(declared())
BOUND = re.compile(r"(.*\.)?max(\..*)?|.*\.limit")
NO_BOUNDS = frozenset(
    {
        "batch.max.age.ms",
        "fetch.max.bytes",
        "gateway.fetch.max.version",
        "group.consumer.max.assignment.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumer.max.session.timeout.ms",
        "group.max.session.timeout.ms",
        "group.share.delivery.count.limit",
        "group.share.max.assignment.interval.ms",
        "group.share.max.delivery.count.limit",
        "group.share.max.heartbeat.interval.ms",
        "group.share.max.partition.max.record.locks",
        "group.share.max.record.lock.duration.ms",
        "group.share.max.session.timeout.ms",
        "group.share.min.delivery.count.limit",
        "group.share.min.partition.max.record.locks",
        "group.streams.max.assignment.interval.ms",
        "group.streams.max.heartbeat.interval.ms",
        "group.streams.max.session.timeout.ms",
        "group.streams.max.standby.replicas",
        "log.cleaner.max.compaction.lag.ms",
        "log.index.size.max.bytes",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "retry.backoff.max.ms",
        "transaction.max.timeout.ms",
    }
)
"""Keys with such a name that say how something works, or bound one client's own choice of a time."""


def test_every_name_is_that_of_a_setting_or_a_metric() -> None:
    assert {name for name in NAMES if name not in KEYS | METRICS} == set()


def test_every_setting_that_is_a_bound_is_on_the_page() -> None:
    assert {key for key in KEYS if BOUND.fullmatch(key) and key not in NAMES} == NO_BOUNDS


@pytest.mark.parametrize("title", [title for title in sections(PAGE) if title])
def test_every_section_has_rows_with_all_four_cells(title: str) -> None:
    found = [line for line in sections(PAGE)[title].splitlines() if line.startswith("|")][2:]

    assert found
    assert {len(line.strip("|").split("|")) for line in found} == {4}

"""``reference/metrics.md`` has every declared metric with its kind, unit, labels and sentence."""

from __future__ import annotations

from support.metric_rows import declared
from support.reference_page import page, rows

WRITTEN = {name: row for name, row in rows(page("reference/metrics.md")).items() if "." in name}
WITHOUT_ROWS = {"odradek.up"}
"""Added by the endpoint itself."""


def test_every_metric_has_its_kind_unit_and_labels() -> None:
    wanted = {each.name: [each.kind, each.unit, ", ".join(each.labels)] for each in declared().values()}

    assert {name: row[1:4] for name, row in WRITTEN.items() if name not in WITHOUT_ROWS} == wanted


def test_every_meaning_begins_with_the_help_text() -> None:
    others = [name for name, each in declared().items() if not WRITTEN[name][4].startswith(each.sentence)]

    assert others == []

"""``reference/lag-metrics.md`` has every metric of lag with its unit."""

from __future__ import annotations

import re

from odradek.lag.report import UNITS
from support.reference_page import page

ROW = re.compile(r"\| (?P<names>`[a-z.`, ]+`) \| (?P<unit>\S+) \| [a-z_, ]+ \| ")


def test_every_metric_has_its_unit() -> None:
    rows = [row for row in map(ROW.match, page("reference/lag-metrics.md").splitlines()) if row]

    assert {name: row["unit"] for row in rows for name in re.findall("`([^`]+)`", row["names"])} == UNITS

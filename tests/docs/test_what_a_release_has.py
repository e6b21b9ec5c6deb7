"""A stranger's list of what a first release needs: each point has a place that says it."""

from __future__ import annotations

import re

import pytest

from docs.test_links import anchors
from support.reference_page import DOCS, rows, sections

POINTS = {
    "decision table": ("Which program do I need", "odradek gateway --upstream"),
    "comparison": ("JMX", "Burrow", "When not to use it"),
    "correctness table": ("❌", "✅", "kill -9"),
    "maturity words": ("beta", "alpha", "trial"),
    "rules of compatibility and deprecation": ("deprecated", "six months", "Downgrade"),
    "matrix of versions": ("Python", "Spark", "librdkafka"),
    "suites of others": ("franz-go",),
    "changelog": ("[0.1.0]",),
    "security policy": ("private",),
    "wheels, inspected": ("odradek-speed", "files"),
    "bill of materials": ("CycloneDX",),
    "image and chart": ("Containerfile", "helm install"),
    "cadence": ("month",),
    "performance": ("µs",),
    "moving from others": ("kafka_exporter", "JMX"),
}
"""The points, and words that the linked pages have between them."""
LINK = re.compile(r"\]\((?P<file>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")
TABLE = {row[1]: row for row in rows(sections("README.md")["What a release has"]).values() if len(row) == 3}


def test_the_list_has_all_points_in_order() -> None:
    assert list(TABLE) == list(POINTS)
    assert [row[0] for row in TABLE.values()] == [str(number + 1) for number in range(len(POINTS))]


@pytest.mark.parametrize("point", POINTS)
def test_a_point_leads_to_what_it_promises(point: str) -> None:
    links = list(LINK.finditer(TABLE[point][2]))
    files = [(DOCS / link["file"]).resolve() for link in links]

    assert links
    texts = " ".join(file.read_text(encoding="utf-8") for file in files)
    assert [word for word in POINTS[point] if word not in texts] == []
    for link, file in zip(links, files, strict=True):
        assert link["anchor"] is None or link["anchor"] in anchors(file)

"""Puts tests that share something costly on one worker of ``pytest --dist loadgroup``, longest tests first.

Tests that share the Spark session, a Kafka cluster, the JVM of Kafka's tools or the browser are one group; so
are tests that share a fixture of their module. Every other test goes to whichever worker is free.
"""

from __future__ import annotations

from itertools import chain

import pytest

SHARED = {
    "spark": "spark",
    "kafka_nodes": "kafka_nodes",
    "chromium": "chromium",
    "jvm": "jvm",
    "clients": "jvm",
}
"""Fixtures of which each worker would have its own, which would cost more than it saves, and their groups."""


def group_of(item: pytest.Item) -> str | None:
    """The group of a test; None if it shares nothing with others."""
    if not isinstance(item, pytest.Function):
        return None
    for name, group in SHARED.items():
        if name in item.fixturenames:
            return group
    definitions = chain.from_iterable(item._fixtureinfo.name2fixturedefs.values())
    if any(definition.scope == "module" for definition in definitions):
        return item.path.name
    return None


def timeout_s(item: pytest.Item) -> float:
    """The test's own time limit; a test without one is short."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("loadgroup", False):  # pytest-xdist sets it in its workers
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (group := group_of(item)):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=timeout_s, reverse=True)

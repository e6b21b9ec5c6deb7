"""Puts tests that share something costly on one worker of ``pytest --dist loadgroup``, longest tests first.

Tests that share the Spark session, a Kafka cluster or the browser are one group, those of the JVM
of Kafka's tools two; those that share a fixture of their module are in the group of one of them. Every other
test goes to whichever worker is free.
"""

from __future__ import annotations

from zlib import crc32

import pytest

SHARED = {
    "spark": "spark",
    "kafka_nodes": "kafka_nodes",
    "chromium": "chromium",
    "jvm": "jvm",
    "clients": "jvm",
}
"""Fixtures of which each worker would have its own, which would cost more than it saves, and their groups."""


JVMS = 2
"""Groups of tests that share a JVM: it starts in seconds, and its tests take a quarter of an hour."""


def shared_group(item: pytest.Item) -> str | None:
    """The group of what the test shares with tests of other modules; None if that is nothing."""
    names = SHARED.keys() & scopes_of(item).keys()
    found = next((SHARED[name] for name in SHARED if name in names), None)
    return f"jvm-{crc32(item.path.name.encode()) % JVMS}" if found == "jvm" else found


def scopes_of(item: pytest.Item) -> dict[str, str]:
    """The test's fixtures that others have too, each with its scope."""
    if not isinstance(item, pytest.Function):
        return {}
    definitions = item._fixtureinfo.name2fixturedefs.items()
    return {name: found[-1].scope for name, found in definitions if found[-1].scope != "function"}


def groups(items: list[pytest.Item]) -> dict[pytest.Item, str]:
    """The groups of all tests that share something."""
    found = {item: group for item in items if (group := shared_group(item))}
    sharing = [item for item in items if "module" in scopes_of(item).values()]
    of_module = {item.path: found[item] for item in sharing if item in found}
    return {item: of_module.get(item.path, item.path.name) for item in sharing} | found


def timeout_s(item: pytest.Item) -> float:
    """The test's own time limit; a test without one is short."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("loadgroup", False):  # pytest-xdist sets it in its workers
        return
    for item, group in groups(items).items():
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=timeout_s, reverse=True)

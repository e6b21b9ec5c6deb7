"""Which tests run: ``pytest`` alone runs what has its result in minutes, and `.ci/run` the rest beside it.

A named file or folder is run whole, except what needs a JVM, a browser or minutes. What costs most of all
runs every night and before a release, with ``.ci/run nightly``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

BY_NAME = "java or slow or spark or browser"
"""Markers of tests that run only by name, with ``-m``."""
ROOT = Path(__file__).parents[2]
NEED_SPARK = [
    ROOT / name
    for name in (
        "plugins/console/tests/test_older_points.py",
        "plugins/spark",
        "tests/integration/collector/test_client_rules.py",
        "tests/integration/collector/test_dashboards_in_prometheus.py",
        "tests/integration/java/test_five_ways.py",
        "tests/unit/findings/test_client_metrics.py",
    )
]
"""Without the extra ``spark``, these are skipped; most of their modules cannot be imported then."""
FOR_CI = [*NEED_SPARK, ROOT / "tests/docs", ROOT / "tests/packaging", ROOT / "tests/lives"]
"""All tests in these have the marker ``ci``."""
NIGHTLY = [
    ROOT / name
    for name in (
        "plugins/spark/tests/test_object_store.py",
        "plugins/spark/tests/test_soak.py",
        "plugins/spark/tests/test_standing_clusters.py",
        "tests/docs/test_first_plugin.py",
        "tests/docs/test_frameworks.py",
        "tests/integration/java/test_fleet_cluster.py",
        "tests/integration/java/test_million_records.py",
        "tests/integration/java/test_performance_tools.py",
        "tests/integration/java/test_quota_performance.py",
        "tests/integration/test_connections_leave_nothing.py",
        "tests/integration/test_freed_memory_goes_back.py",
        "tests/integration/test_million_records.py",
        "tests/integration/test_torn_connections.py",
    )
]
"""Minutes of both cores each: they have the marker ``nightly``, for ``.ci/run nightly``."""
HAS_SPARK = all(importlib.util.find_spec(name) for name in ("deltalake", "pyspark"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose by marker, unless the command line does."""
    if not config.option.markexpr:
        everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
        config.option.markexpr = f"not ({BY_NAME} or nightly{' or ci' if everything else ''})"


class SkippedModule(pytest.Module):
    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        pytest.skip("needs the extra `spark`", allow_module_level=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if HAS_SPARK or not is_in(NEED_SPARK, module_path):
        return None
    return SkippedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if is_in(FOR_CI, item.path):
            item.add_marker("ci")
        if item.path in NIGHTLY:
            item.add_marker("nightly")


def is_in(places: list[Path], path: Path) -> bool:
    return any(path.is_relative_to(place) for place in places)

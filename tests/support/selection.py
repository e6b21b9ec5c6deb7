"""Which tests run: ``pytest`` alone runs what has its result in minutes, and `.ci/run` the rest beside it.

A named file or folder is run whole, except what needs a JVM, a browser or minutes. What costs most of all
runs every night and before a release, with ``.ci/run nightly``.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

BY_NAME = "java or slow or spark or browser"
"""Markers of tests that run only by name, with ``-m``."""
UNMARKED = f"not ({BY_NAME} or nightly or ci)"
"""What `pytest` alone runs."""
MARKED = f"(ci or {BY_NAME})"
"""What `.ci/run` runs beside it, by night all of it."""
MARKED_WHOLE = re.compile(rf"^pytestmark = .*\bmark\.({UNMARKED[5:-1].replace(' or ', '|')})\b", re.MULTILINE)
"""In the text of a module whose tests are all marked."""
MARKED_SOMEWHERE = re.compile(MARKED_WHOLE.pattern.removeprefix("^pytestmark = .*"))
"""In the text of a module with a test that is marked."""
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
        "plugins/spark/tests/test_spark_versions.py",
        "plugins/spark/tests/test_standing_clusters.py",
        "tests/docs/test_first_plugin.py",
        "tests/docs/test_frameworks.py",
        "tests/integration/java/test_config_differential.py",
        "tests/integration/java/test_fleet_cluster.py",
        "tests/integration/java/test_million_records.py",
        "tests/integration/java/test_performance_tools.py",
        "tests/integration/java/test_quota_differential.py",
        "tests/integration/java/test_quota_performance.py",
        "tests/integration/java/test_streams_group_differential.py",
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
        config.option.markexpr = UNMARKED if everything else f"not ({BY_NAME} or nightly)"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which no test runs: each of pytest's processes imports all the others."""
    chosen, path = config.option.markexpr, collection_path
    if path.suffix != ".py" or lacks_spark(path) or not (chosen == UNMARKED or chosen.startswith(MARKED)):
        return None
    wanted = MARKED_WHOLE if chosen == UNMARKED else MARKED_SOMEWHERE
    is_marked = bool(markers_of_place(path) or wanted.search(path.read_text("utf-8")))
    return True if is_marked == (chosen == UNMARKED) else None


class SkippedModule(pytest.Module):
    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        pytest.skip("needs the extra `spark`", allow_module_level=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    if not lacks_spark(module_path):
        return None
    return SkippedModule.from_parent(parent, path=module_path)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in markers_of_place(item.path):
            item.add_marker(marker)


def lacks_spark(path: Path) -> bool:
    """Whether a module needs the extra ``spark``, and it is not there."""
    return not HAS_SPARK and is_in(NEED_SPARK, path)


@cache
def markers_of_place(path: Path) -> list[str]:
    """The markers that a module's tests have by its place."""
    return ["ci"] * is_in(FOR_CI, path) + ["nightly"] * (path in NIGHTLY)


def is_in(places: list[Path], path: Path) -> bool:
    return any(path.is_relative_to(place) for place in places)

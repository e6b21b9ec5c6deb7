"""The full test suite uses three processes for two cores: many tests wait for others' processes.

Named paths run in one process, where a debugger and prints work. ``-n`` overrides both.
"""

from __future__ import annotations

import os

import pytest

MOST_WORKERS = 8
"""Each worker collects all tests again, which takes ten seconds of a core or more."""


def worker_count(cores: int | None) -> int:
    return min(3 * (cores or 1) // 2, MOST_WORKERS)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Set the number of processes before pytest-xdist reads it, unless the command line sets it."""
    if not config.pluginmanager.hasplugin("xdist") or hasattr(config, "workerinput"):
        return
    option = config.option
    everything = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if everything and option.numprocesses is None and not (option.tx or option.usepdb or option.collectonly):
        option.numprocesses = worker_count(os.cpu_count())
        if option.dist == "no":
            option.dist = "worksteal"

"""A log in a temporary directory, and batches for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.partition_log import PartitionLog

NOW_MS = 1_700_000_000_000
OpenLog = Callable[..., PartitionLog]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "pushes-0"
    path.mkdir()
    return path


@pytest.fixture
def open_log(folder: Path) -> OpenLog:
    def opened(config: LogConfig | None = None, now_ms: int = NOW_MS) -> PartitionLog:
        return PartitionLog(folder, config or LogConfig(), now_ms)

    return opened


@pytest.fixture
def log(open_log: OpenLog) -> PartitionLog:
    return open_log()

"""Settings of pytest for all tests of the tree."""

from __future__ import annotations

pytest_plugins = ["support.surroundings", "support.selection", "support.workers", "support.worker_groups"]

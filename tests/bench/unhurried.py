"""The `odradek` command whose hosts take a push at any time: a closed loop of pushes is never throttled.

Usage: ``python -m bench.unhurried gateway --workers 2 ...``; each worker starts in the same way.
"""

from __future__ import annotations

from typing import Any

from bench.host import JumpingClock
from odradek.cli.main import main
from odradek.programs import host
from odradek.telemetry.client_metrics_manager import ClientMetricsManager


def unhurried(**parts: Any) -> ClientMetricsManager:
    """The manager with a clock on which a push interval passes between two readings."""
    return ClientMetricsManager(**{**parts, "clock": JumpingClock()})


if __name__ == "__main__":
    setattr(host, "ClientMetricsManager", unhurried)  # noqa: B010  it is the name of a class
    main()

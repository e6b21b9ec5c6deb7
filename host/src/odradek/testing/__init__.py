"""A broker in a test: ``with odradek.testing.host() as host:``, or the fixture ``odradek_host``.

Importing this loads nothing of the host: pytest imports it in every session. The parts are loaded by the
first host that is started, or by their names here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.testing.arrivals import NothingCame
    from odradek.testing.clock import MockClock
    from odradek.testing.conformance import ConformanceReport
    from odradek.testing.data_points import DataPoint
    from odradek.testing.fault import Fault
    from odradek.testing.host_context import HostContext
    from odradek.testing.request_log import Request
    from odradek.testing.running_host import RunningHost
    from odradek.testing.telemetry_log import Push
    from odradek.testing.virtual_clock import VirtualClock

__all__ = [
    "ConformanceReport",
    "DataPoint",
    "Fault",
    "MockClock",
    "NothingCame",
    "Push",
    "Request",
    "RunningHost",
    "VirtualClock",
    "host",
]

MODULES = {
    "ConformanceReport": "conformance",
    "DataPoint": "data_points",
    "Fault": "fault",
    "MockClock": "clock",
    "NothingCame": "arrivals",
    "Push": "telemetry_log",
    "Request": "request_log",
    "RunningHost": "running_host",
    "VirtualClock": "virtual_clock",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{MODULES[name]}"), name)


def host(
    *,
    clock: VirtualClock | None = None,
    data_dir: Path | None = None,
    plugins: Mapping[str, object] | None = None,
    **config: object,
) -> HostContext:
    """A host on a free port, to be used with ``with`` or ``async with``.

    Args:
        clock: Time that passes only when the test says so; None for the machine's.
        data_dir: Where its data stay when it stops, for another one to start with; None for a temporary one.
        plugins: Tables of installed plugins, by name: ``{"enrich": {}}``. Others that are installed stay out.
        config: Keys of the configuration with ``_`` for ``.``: ``telemetry_max_bytes=1000``. A table is a
            mapping, with keys as they are: ``subscriptions={"all": {"interval.ms": 100}}``.

    Returns:
        What gives a `RunningHost`. Entering it raises ConfigError for a key or a value that is wrong.
    """
    from odradek.testing.host_context import HostContext

    return HostContext(config, clock, data_dir, plugins)

"""A broker in a test: ``with odradek.testing.host() as host:``, or the fixture ``odradek_host``.

pytest imports this module in every session, so it must not import the host. The parts are imported when the
first host starts or when a name of this module is used.

>>> from odradek import testing
>>> with testing.host(num_partitions=3) as host:
...     host.topics.create("orders")
...     host.topics.names()
['orders']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odradek.bounds.first_use import few_collections, on_first_use

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.testing.arrivals import NothingCame
    from odradek.testing.clock import MockClock
    from odradek.testing.conformance import ConformanceReport
    from odradek.testing.data_points import DataPoint
    from odradek.testing.fault import Fault, FaultNotHit
    from odradek.testing.host_context import HostContext
    from odradek.testing.request_log import Request
    from odradek.testing.requests import request_context
    from odradek.testing.running_host import RunningHost
    from odradek.testing.telemetry_log import Push
    from odradek.testing.virtual_clock import VirtualClock

__all__ = [
    "ConformanceReport",
    "DataPoint",
    "Fault",
    "FaultNotHit",
    "MockClock",
    "NothingCame",
    "Push",
    "Request",
    "RunningHost",
    "VirtualClock",
    "host",
    "request_context",
]

__getattr__ = on_first_use(
    __name__,
    conformance="ConformanceReport",
    data_points="DataPoint",
    fault="Fault FaultNotHit",
    clock="MockClock",
    arrivals="NothingCame",
    telemetry_log="Push",
    request_log="Request",
    running_host="RunningHost",
    virtual_clock="VirtualClock",
    requests="request_context",
)


def host(
    *,
    clock: VirtualClock | None = None,
    data_dir: Path | None = None,
    plugins: Mapping[Any, object] | Iterable[object] = (),
    tls: bool = False,
    users: Mapping[str, str] | None = None,
    acls: Sequence[str] | None = None,
    brokers: int = 1,
    **config: object,
) -> HostContext:
    """Return a host on a free port, as a context manager for ``with`` or ``async with``.

    Args:
        clock: A clock that the test advances; None for the machine's clock.
        data_dir: Directory for data that outlive the host, so that another host can start with them; None for
            a temporary directory.
        plugins: The plugins to activate: names of installed ones, and others as they are: an object with
            hooks, its class, a module, or the path of a file. With tables it is a mapping:
            ``{"enrich": {}, TeamPlugin: {"unknown": "nobody"}}``. Other installed plugins stay inactive.
        tls: Encrypt the connections, with a new certificate; needs the extra ``odradek[tls]``.
        users: Passwords by name: clients must authenticate. `RunningHost.client` returns the settings of one.
        acls: What users may do, such as ``"alice READ,DESCRIBE topic:orders"``; all else is denied, except to
            the super user ``admin``. None for a host that allows everything.
        brokers: How many brokers clients see, each on a port of its own; see `RunningHost.brokers`.
        config: Keys of the configuration with ``_`` for ``.``: ``telemetry_max_bytes=1000``. A table is a
            mapping with unchanged keys: ``subscriptions={"all": {"interval.ms": 100}}``.

    Returns:
        A context manager that yields a `RunningHost`. Entering it raises ConfigError for an invalid key or
        value, and for a plugin that cannot be used.
    """
    with few_collections():
        from odradek.testing.host_context import HostContext
        from odradek.testing.host_security import HostSecurity

    return HostContext(config, clock, data_dir, plugins, HostSecurity(tls, users or {}, acls), brokers)

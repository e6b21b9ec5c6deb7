"""The objects of a running host hold each other in one direction."""

from __future__ import annotations

import odradek.testing
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.meters.host_meter import HostMeter
from odradek.net.listener import Listener
from odradek.net.sasl_listener import SaslListener
from support.object_graph import circles, everything, module

LISTENERS = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"


def test_the_objects_of_a_running_host_have_no_circles() -> None:
    with odradek.testing.host(listeners=LISTENERS, metrics_listener="http://127.0.0.1:0") as running:
        reached = running.call(lambda: list(everything(running.host)))
        found = running.call(lambda: circles(running.host, module))

    for kind in (Dispatcher, HostMeter, Listener, SaslListener):
        assert any(isinstance(each, kind) for each in reached)
    assert found == set()

"""Slow consumers of three libraries behind a gateway: each has a lag, in records and in seconds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from contrib.capture.ports import free_port

from odradek.testing import RunningHost
from support.gateways import gateway_of
from support.slow_readers import LIBRARIES, READERS, TOPIC, LagPage, fill, settings

pytestmark = pytest.mark.ci


def test_clients_that_commit_nothing_have_a_lag(
    odradek_hosts: Callable[..., RunningHost], tmp_path: Path
) -> None:
    cluster = odradek_hosts(telemetry_lag="none")
    cluster.topics.create(TOPIC)
    stored_s = fill(cluster.bootstrap)
    port = free_port()
    page = LagPage(port)
    with (
        gateway_of(
            cluster.bootstrap, tmp_path / "data", "gateway.nodes=1", *settings(tmp_path, port)
        ) as gateway,
        contextlib.ExitStack() as clients,
    ):
        for read in READERS.values():
            clients.enter_context(read(gateway.bootstrap))
        for client_id, library in LIBRARIES.items():
            page.assert_behind(client_id, stored_s)
            assert page.library(client_id) == library

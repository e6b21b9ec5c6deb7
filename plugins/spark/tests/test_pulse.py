"""The state of a running ingest, as orchestrators and Prometheus see it."""

from __future__ import annotations

import socket
import struct
import threading
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from odradek.endpoints import Address
from odradek_spark.cli.ingest import pulsing
from odradek_spark.ingest.pulse import STILL_S, Pulse, served
from odradek_spark.ingest.status import Totals
from support.waiting import wait_until

RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: a connection that is closed is reset."""


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def got(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_ingest_is_ready_while_it_runs_and_alive_while_it_waits() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    starting = pulse.not_alive(), pulse.not_ready()
    pulse.runs()
    running = pulse.not_alive(), pulse.not_ready()
    pulse.waits("no broker answers; trying again in 60 s")
    clock.now += 60
    waiting = pulse.not_alive(), pulse.not_ready()

    assert starting == (None, "Spark starts")
    assert running == (None, None)
    assert waiting == (None, "no broker answers; trying again in 60 s")


def test_an_ingest_without_a_sign_of_life_is_dead() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    pulse.runs()

    clock.now += STILL_S + 1

    assert pulse.not_alive() == pulse.not_ready() == "no sign of life for 301 s"


def test_the_state_is_served() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    with served(pulse, "127.0.0.1", 0) as port:
        starting = got(port, "/healthz"), got(port, "/readyz")
        pulse.runs()
        pulse.shows(Totals(batches=2, pushes=40, points=900, dead_letters=1), waiting=7)
        clock.now += 12
        ready = got(port, "/readyz")
        status, page = got(port, "/metrics")

    assert starting == ((200, "ok\n"), (503, "Spark starts\n"))
    assert ready == (200, "ok\n")
    assert status == 200
    values = {
        each.name: each.value for family in text_string_to_metric_families(page) for each in family.samples
    }
    assert values == {
        "odradek_pipeline_batches_total": 2,
        "odradek_pipeline_pushes_total": 40,
        "odradek_pipeline_points_total": 900,
        "odradek_pipeline_dead_letters_total": 1,
        "odradek_pipeline_waiting": 7,
        "odradek_pipeline_last_batch_age_seconds": 12,
        "odradek_pipeline_ready": 1,
    }


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6")
def test_the_state_is_served_over_ipv6(capsys: pytest.CaptureFixture[str]) -> None:
    with pulsing(Address("::1", 0)):
        url = capsys.readouterr().err.split()[-1]
        with urllib.request.urlopen(url, timeout=30) as page:
            assert b"odradek_pipeline_ready 0.0" in page.read()

    assert url.startswith("http://[::1]:")


def test_a_client_that_breaks_off_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    def answering() -> list[str]:
        return [each.name for each in threading.enumerate() if "process_request" in each.name]

    with served(Pulse(), "127.0.0.1", 0) as port:
        with socket.create_connection(("127.0.0.1", port), 30) as client:
            client.send(b"GET /healthz")
            wait_until(answering, "the request is not read")
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        wait_until(lambda: not answering(), answering)

    assert capsys.readouterr().err == ""


def test_two_servers_cannot_have_one_port() -> None:
    with (
        served(Pulse(), "127.0.0.1", 0) as port,
        pytest.raises(OSError, match="in use"),
        served(Pulse(), "127.0.0.1", port),
    ):
        pass

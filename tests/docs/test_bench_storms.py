"""The figures of ``python -m bench.storms``, and the probe on the loop of a host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.harness import MISSED, NOT_MEASURED, REACHED
from bench.probed_serve import ProbedServe
from bench.secured import KAFKA, ODRADEK, PASSWORD, PLAIN, SASL_TLS, USER, Secured, served
from bench.storm_figures import Figures, Storm, lines
from bench.storms import arguments_of, command, servers_of
from support.certificates import Files

QUIET = {"cpu_p999_ms": 1.0, "cpu_max_ms": 2.0, "wall_p999_ms": 3.0, "wall_max_ms": 4.0}
CLIENTS: dict[str, Any] = {
    "seconds": 5.0, "p50_s": 0.01, "p99_s": 0.1, "again": 0, "reasons": {}, "unfinished": 0, "cpu_s": 1.0,
}  # fmt: skip
STORM = Storm(clients=CLIENTS, cpu_s=2.0, loop=QUIET, lost=0, after_bytes=80 << 20)
FIGURES = Figures(
    server=ODRADEK, kind="plain", count=10_000, first=STORM, storms=[STORM],
    before_bytes=40 << 20, peak_bytes=90 << 20, left_bytes=50 << 20, leaving=QUIET,
)  # fmt: skip


def with_clients(**changes: Any) -> Storm:
    return replace(STORM, clients=CLIENTS | changes)


def test_clients_that_tried_again_are_reported_with_their_reasons() -> None:
    assert STORM.failed == ""
    assert (
        with_clients(again=2, reasons={"timeout": 1, "reset": 3}).failed
        == "2 tried again: 3 reset, 1 timeout"
    )
    assert replace(STORM, lost=7).failed == "7 times a full listen queue"


def test_a_storm_in_which_a_client_never_pushed_is_a_failure() -> None:
    missing = with_clients(unfinished=1)

    assert FIGURES.is_complete
    assert not replace(FIGURES, storms=[STORM, missing]).is_complete
    assert not replace(FIGURES, first=missing).is_complete
    assert "1 NEVER PUSHED" in str(replace(FIGURES, first=missing))


def test_the_cost_of_a_client_is_that_of_the_storms_without_the_first_arrival() -> None:
    words = " ".join(str(replace(FIGURES, first=replace(STORM, cpu_s=9.0))).split())

    assert "ms of CPU of the server per client 0.200" in words
    assert "MiB before, peak, after all have left 40, 90, 50" in words


def test_a_peer_has_no_loop() -> None:
    peer = replace(FIGURES, server=KAFKA, first=replace(STORM, loop={}), storms=[STORM], leaving={})

    assert "loop" in str(FIGURES)
    assert "loop" not in str(peer)


def test_the_lines_of_the_table_compare_with_a_peer_and_the_loop_with_its_bounds() -> None:
    peer = replace(FIGURES, server=KAFKA, peak_bytes=80 << 20, leaving={})

    alone, beside = ([(each.row, each.verdict) for each in lines(FIGURES, peers)] for peers in ((), (peer,)))

    title = "storm of 10,000 clients, plain"
    facts = [f"{title}, {fact}" for fact in ("until all have pushed", "CPU per client", "peak memory")]
    busy = [(f"{title}, loop busy, {end}", REACHED) for end in ("p99.9", "longest")]
    assert alone == [*((fact, "") for fact in facts), *busy]
    assert beside == [*zip(facts, (REACHED, REACHED, MISSED), strict=True), *busy]


def test_a_storm_in_which_a_client_never_pushed_is_not_measured() -> None:
    missing = replace(FIGURES, storms=[with_clients(unfinished=1)])

    verdicts = [each.verdict for each in lines(missing, (replace(FIGURES, server=KAFKA),))]

    assert verdicts == [NOT_MEASURED] * 3 + [REACHED] * 2


@pytest.mark.parametrize("one_address", [False, True])
def test_clients_get_the_certificate_and_the_user_of_their_kind(
    one_address: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.storms.program", lambda: Path("storm"))
    options = arguments_of(["--clients", "7", *(["--one-address"] if one_address else [])])
    server, files = Secured("a server", 1, {PLAIN: 1, SASL_TLS: 2}), Files(tmp_path)
    addresses = "shared" if one_address else "own"

    plain, both = (command(options, kind, server, files) for kind in ("plain", "tls-scram"))

    assert plain == [Path("storm"), "127.0.0.1:1", "7", "5.0", tmp_path / "payload", addresses]
    assert both[1] == "127.0.0.1:2"
    assert both[6:] == ["-tls", files.ca, "-scram", f"{USER}:{PASSWORD}"]
    assert len((tmp_path / "payload").read_bytes()) == 500


def test_the_probe_reports_the_loop_of_a_host_as_users_start_it(tmp_path: Path) -> None:
    with served(tmp_path, None, ProbedServe) as (server, serve):
        reports = [serve.report() for _ in range(2)]

    assert set(server.ports) >= {PLAIN, SASL_TLS}
    assert all(each["ticks"] > 0 for each in reports)
    assert all(each["cpu_max_ms"] >= each["cpu_p999_ms"] > 0 for each in reports)


@pytest.mark.parametrize(
    ("options", "servers"),
    [([], [ODRADEK]), (["--kafka"], [ODRADEK, KAFKA]), (["--kafka-only"], [KAFKA])],
)
def test_the_node_is_measured_beside_the_host_or_alone(options: list[str], servers: list[str]) -> None:
    assert servers_of(arguments_of(options)) == servers

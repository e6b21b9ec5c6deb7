"""``odradek demo`` as a user runs it, with its output in a pipe."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from contrib.go_program import UnavailableError
from contrib.prometheus.prometheus import PROMETHEUS

from odradek.cli.main import run

pytestmark = pytest.mark.ci


def demo(*arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "protocol"), [([], "PLAINTEXT"), (["--secure"], "SASL_SSL")], ids=["plain", "secure"]
)
def test_the_demo_shows_a_labeled_producer_and_consumer(options: list[str], protocol: str) -> None:
    pytest.importorskip("confluent_kafka")

    result = demo("--seconds", "6", *options, timeout_s=60)

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"host on {protocol}://127.0.0.1:")
    for produced, consumed in re.findall(r"(\d+) records produced, (\d+) read", result.stdout):
        assert int(consumed) <= int(produced)
    for kind in ("producer", "consumer"):
        row = re.search(rf"^  {kind} client_id=demo-{kind} (.*)$", result.stdout, re.MULTILINE)
        assert row is not None, result.stdout
        assert re.match(
            r"software=confluent-kafka-python/\S+ instance=\S{22} labeled=yes pushes=[1-9]", row[1]
        )
        assert re.search(r"metrics=[1-9]\d* \| \S", row[1])
    summary = re.search(
        r"^([1-9]\d*) labeled pushes of 2 client instances, [1-9]\d* OTLP requests$",
        result.stdout,
        re.MULTILINE,
    )
    assert summary is not None, result.stdout
    check_the_end(result.stdout, pushes=int(summary[1]))


def test_the_demo_shows_a_client_that_pushes_and_one_that_cannot_through_gateways() -> None:
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("aiokafka")

    result = demo("--gateway", "--seconds", "4", timeout_s=60)

    assert result.returncode == 0, result.stderr
    for name, client in (("edge-1", "demo-producer"), ("edge-2", "demo-silent")):
        assert re.search(rf"^gateway {name} on 127.0.0.1:\d+, for {client}$", result.stdout, re.MULTILINE)
    end = result.stdout[result.stdout.index("at the end: ") :]
    produced = {name: int(count) for count, name in re.findall(r"(\d+) records of ([a-z-]+)", end)}
    assert min(produced.values()) > 0
    pushed, arrived = map(int, re.findall(r"(\d+) data points pushed, (\d+) at the OTLP", end)[0])
    assert pushed == arrived > 0
    (pushing,) = re.findall(r"^  producer client_id=demo-producer (.*)$", end, re.MULTILINE)
    (silent,) = re.findall(r"^  producer client_id=demo-silent (.*)$", end, re.MULTILINE)
    assert re.search(r"software=confluent-kafka-python/\S+ .* labeled=yes pushes=[1-9]", pushing)
    assert re.search(r"labeled=yes observed=yes pushes=[1-9]", silent)
    assert f"sent {produced['demo-silent']} records" in silent


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_prometheus_has_as_many_records_as_the_demo_produced() -> None:
    pytest.importorskip("confluent_kafka")
    try:
        program = PROMETHEUS.path()
    except UnavailableError as reason:
        pytest.skip(f"no Prometheus: {reason}")

    result = demo("--prometheus", str(program), "--secure", "--seconds", "3", timeout_s=90)

    assert result.returncode == 0, result.stderr
    assert re.search(r"^Prometheus on http://127.0.0.1:\d+ until the demo ends", result.stdout, re.MULTILINE)
    (produced,) = re.findall(r"^at the end: (\d+) records produced", result.stdout, re.MULTILINE)
    assert re.search(
        rf"^Prometheus: {produced} records of demo-producer, [1-9]\d* series",
        result.stdout,
        re.MULTILINE,
    )


def test_without_prometheus_the_demo_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    status = run(["demo", "--prometheus"])

    assert status == 2
    said = capsys.readouterr().err
    assert "no program 'prometheus' in PATH" in said
    assert "odradek demo --prometheus PATH" in said


def test_a_program_that_is_no_prometheus_ends_the_demo(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\necho out of order\n")
    program.chmod(0o755)

    result = demo("--prometheus", str(program), "--seconds", "3", timeout_s=60)

    assert result.returncode == 1
    assert f"{program} does not start: out of order" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--upstream", "localhost:9092"], "--upstream needs --gateway"),
        (["--gateway", "--secure"], "--gateway cannot be combined with --spark, --secure, --console or"),
        (["--gateway", "--console"], "--gateway cannot be combined with --spark, --secure, --console or"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", *options]) == 2
    assert problem in capsys.readouterr().err


def test_an_upstream_that_does_not_answer_ends_the_demo() -> None:
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("aiokafka")

    result = demo("--gateway", "--upstream", "127.0.0.1:1", "--seconds", "3", timeout_s=60)

    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "127.0.0.1:1" in result.stderr


def check_the_end(printed: str, *, pushes: int) -> None:
    """The last rows and counts agree with each other and with the summary."""
    counts, *rows = printed[printed.index("at the end: ") :].splitlines()
    produced, consumed, pushed, arrived = map(int, re.findall(r"\d+", counts))
    assert produced == consumed > 0
    assert pushed == arrived > 0
    assert sum(int(found) for found in re.findall(r" pushes=(\d+) ", "\n".join(rows))) == pushes


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_demo_ingests_pushes_and_queries_the_tables(tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    result = demo("--spark", "--secure", "--seconds", "14", "--keep", str(kept), timeout_s=240)

    assert result.returncode == 0, result.stderr
    quota = "quota of client-id demo-producer: producer_byte_rate=15000 (it sends more)"
    assert quota in result.stdout
    loaded, clients, slowest, throttled = re.split(r"\n[1-4] of 4: .*\n", result.stdout)[1:]
    assert f'"path": "{kept / "tables"}"' in loaded
    assert re.search(r"^ingested \d+ pushes", loaded, re.MULTILINE)
    assert re.search(r"^demo-producer  \S{22}  .*confluent-kafka-python", clients, re.MULTILINE)
    assert re.search(r"^demo-consumer  \S{22}  .*confluent-kafka-python", clients, re.MULTILINE)
    assert re.search(r"^demo-producer +\d", slowest, re.MULTILINE)
    assert re.search(r"demo-producer  produce +\d.* m?s +\d.* m?s", throttled)
    assert f"the tables are in {kept / 'tables'}" in throttled
    assert (kept / "tables" / "points" / "_delta_log").is_dir()

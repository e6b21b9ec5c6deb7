"""``odradek serve`` as a process: the ready line, the exit status, and one clear line for each mistake."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.metadata import MetadataRequest
from support.data_requests import fetch_request
from support.hosts import EVERYTHING, LOOPBACK, ServeProcess, running_host, serving
from support.probes import get, metrics_port
from support.wire_client import WireClient

pytestmark = pytest.mark.ci


def failed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of serve that must fail to start."""
    command = [sys.executable, "-m", "odradek", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def assert_one_line(result: subprocess.CompletedProcess[str], *expected: str) -> None:
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1, result.stderr
    for part in expected:
        assert part in result.stderr


def address(serve: ServeProcess) -> tuple[str, int]:
    host, _, port = serve.bootstrap.partition(":")
    return host, int(port)


def test_the_ready_line_has_the_real_port_and_sigterm_stops_it(tmp_path: Path) -> None:
    with serving(tmp_path / "data", "--set", "node.id=7") as serve:
        with WireClient(address(serve)) as client:
            client.introduce()
            broker = client.send(MetadataRequest(topics=[])).brokers[0]
        status = serve.terminate()

    assert (
        serve.ready
        == f"odradek ready listeners=PLAINTEXT://{serve.bootstrap} node.id=7 data={tmp_path / 'data'}"
    )
    assert (broker.node_id, broker.host, broker.port) == (7, *address(serve))
    assert status == 0
    assert "why=SIGTERM" in next(line for line in serve.errors if "stopping" in line)


def test_sigint_stops_it_too(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        serve.process.send_signal(signal.SIGINT)
        status = serve.process.wait(10)
        serve.join()

    assert status == 0


def test_a_long_poll_is_answered_when_the_host_stops(tmp_path: Path) -> None:
    with serving(tmp_path) as serve, WireClient(address(serve)) as client:
        client.introduce()
        client.send(
            CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])
        )
        fetch = fetch_request("t", max_wait_ms=60_000)
        client.send_bytes(client.frame(fetch, 11))
        client.send_bytes(b"")
        serve.process.send_signal(signal.SIGTERM)
        response = client.answer(fetch, 11)
        status = serve.process.wait(10)
        serve.join()

    assert response.responses[0].partitions[0].error_code == 0
    assert status == 0


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = failed("--set", f"listeners=PLAINTEXT://127.0.0.1:{port}", "--set", f"data.dir={tmp_path}")

    assert_one_line(result, "listeners", str(port), "in use")


@pytest.mark.parametrize("setting", ["listeners=PLAINTEXT://a..b:9092", "metrics.listener=http://a..b:9093"])
def test_an_invalid_host_name_is_one_line(tmp_path: Path, setting: str) -> None:
    anywhere = ("--set", f"data.dir={tmp_path}", "--set", "listeners=PLAINTEXT://127.0.0.1:0")

    result = failed(*anywhere, "--set", setting)

    assert_one_line(result, setting.partition("=")[0], "a..b", "does not name a host")


def test_a_data_directory_in_use_is_one_line(tmp_path: Path) -> None:
    with serving(tmp_path):
        result = failed("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}")

    assert_one_line(result, "data.dir", str(tmp_path), "in use by another process")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--set", "no.such.key=1"], ["no.such.key", "unknown key"]),
        (
            ["--set", "plugins.otlp.timeout.ms=soon", "--set", "plugins.otlp.endpoint=http://x"],
            ["timeout.ms", "soon"],
        ),
        (["--set", "plugins.enrich.labelz=x"], ["plugins.enrich.labelz", "unknown key"]),
        (["--set", "plugins.nowhere.a=1"], ["plugins.nowhere", "no such plugin is installed"]),
        (["--plugin", "nowhere"], ["nowhere", "no such plugin is installed"]),
        (["--set", "subscriptions.s.interval.ms=99"], ["subscriptions.s", "99", "100"]),
        (["--set", "subscriptions.s.match=client_id=[unclosed"], ["subscriptions.s", "client_id=[unclosed"]),
        (["--set", "subscriptions.s.unknown=1"], ["subscriptions.s", "unknown"]),
        (["--config", "/nowhere/odradek.toml"], ["/nowhere/odradek.toml", "cannot be read"]),
        (["--unknown-option"], ["--unknown-option"]),
    ],
)
def test_a_mistake_is_one_line_and_status_2(
    tmp_path: Path, arguments: list[str], expected: list[str]
) -> None:
    result = failed("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}", *arguments)

    assert_one_line(result, *expected)


def test_subscriptions_follow_the_configuration_and_keep_changes_over_the_network(tmp_path: Path) -> None:
    with running_host(tmp_path, "subscriptions.kept.metrics=a", "subscriptions.dropped.metrics=b") as first:
        first.call(lambda: first.host.metadata.put_resource(16, "from-network", {"metrics": "c"}))
    with running_host(tmp_path, "subscriptions.kept.metrics=changed") as second:
        names = second.call(lambda: sorted(second.host.telemetry.subscriptions.by_name))
        kept = second.call(lambda: second.host.metadata.resource(16, "kept"))

    assert names == ["from-network", "kept"]
    assert kept == {"metrics": "changed"}


def test_prometheus_sees_the_brokers_own_metrics(tmp_path: Path) -> None:
    class Failing:
        def client_receiver(self) -> Failing:
            return self

        def export_metrics(self, _context: object, _payload: object) -> None:
            raise ValueError("of the test")

    with (
        running_host(
            tmp_path,
            "metrics.listener=http://127.0.0.1:0",
            *EVERYTHING,
            before_start=lambda host: host.receivers.register("failing", Failing()),
        ) as host,
        WireClient(host.address) as client,
    ):
        client.introduce()
        error_code = client.push(b"")
        client.push(b"\x0a\x00")
        _, text = get(metrics_port(host), "/metrics")

    assert error_code == 0
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert any(
        line.startswith("kafka_server_client_metrics_instance_count") and line.endswith(" 2.0")
        for line in lines
    )
    errors = [line for line in lines if line.startswith("kafka_server_client_metrics_plugin_error_count")]
    assert len(errors) == 2
    assert sum(float(line.rpartition(" ")[2]) for line in errors) == 1
    assert any("odradek_plugin_failures_total" in line and 'plugin="failing"' in line for line in lines)


def test_a_secret_from_a_file_is_in_no_output(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("Bearer s3cret-of-the-collector\n")
    secret.chmod(0o644)
    headers = f"metrics.otlp.headers=authorization=${{file:{secret}}}"

    with serving(tmp_path / "data", "--set", headers, "--log-level", "debug") as serve:
        describe = ["configs", "--bootstrap-server", serve.bootstrap, "--describe", "--broker", "1", "--all"]
        described = subprocess.run(
            [sys.executable, "-m", "odradek", *describe],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        serve.terminate()
    log = "\n".join(serve.errors)

    assert "metrics.otlp.headers=null sensitive=true" in described.stdout
    assert "s3cret" not in described.stdout + log
    assert "every user of this machine can read a file with a secret" in log


def test_the_audit_log_has_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    create = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])

    with serving(tmp_path / "data", "--set", f"audit.log.file={file}") as serve:
        with WireClient(address(serve)) as client:
            client.introduce()
            client.send(create)
            file.rename(tmp_path / "audit.log.1")
            client.send(create)
        serve.terminate()
    first, second = [json.loads((tmp_path / name).read_text()) for name in ("audit.log.1", "audit.log")]

    assert (first["logger"], first["api"], first["on"], first["outcome"]) == (
        "odradek.audit",
        "CreateTopics",
        ["Topic:t"],
        "allowed",
    )
    assert (second["outcome"], second["why"]) == ("failed", ["t: Topic 't' already exists."])
    assert "administration" not in "\n".join(serve.errors)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("audit.log*")} == {0o600}


def test_only_the_owner_can_read_the_files_of_a_host(tmp_path: Path) -> None:
    create = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)])

    with serving(tmp_path / "data") as serve:
        with WireClient(address(serve)) as client:
            client.introduce()
            client.send(create)
        serve.terminate()
    paths = [tmp_path / "data", *(tmp_path / "data").rglob("*")]

    assert len(paths) > 5
    assert {path.name: oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077} == {}
